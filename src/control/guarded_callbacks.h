// The callbacks of an experiment or a training run, called in order. A callback that throws is disabled.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cadre/value.h"
#include "worker/worker.h"

namespace cadre::control {

// Callback: tune::Callback or train::Callback.
template <class Callback>
class GuardedCallbacks {
 public:
  bool empty() const { return entries_.empty(); }
  // Returns the warnings for the user since the last call.
  std::vector<std::string> take_warnings() { return std::exchange(warnings_, {}); }

 protected:
  struct Entry {
    std::shared_ptr<Callback> callback;
    std::string name;  // asked for once: name() is the user's too, and may throw
    bool is_on = true;
    Value state = {};  // what the callback remembers in an experiment's store
  };

  explicit GuardedCallbacks(const std::vector<std::shared_ptr<Callback>>& callbacks) {
    entries_.reserve(callbacks.size());
    for (const std::shared_ptr<Callback>& callback : callbacks) {
      Entry& entry = entries_.emplace_back(Entry{callback, std::to_string(entries_.size() + 1)});
      call(entry, "name", [&](const Callback& named) { entry.name = named.name(); });
    }
  }
  ~GuardedCallbacks() = default;

  // Calls `hook` for one callback, or for each, unless it is disabled; `name` is the hook's in warnings.
  template <class Hook>
  void call(Entry& entry, const char* name, const Hook& hook) {
    if (!entry.is_on) return;
    try {
      hook(*entry.callback);
    } catch (...) {
      entry.is_on = false;
      warnings_.push_back("the callback " + entry.name + " failed in " + name +
                          ", and is switched off: " + worker::describe_current_exception());
    }
  }
  template <class Hook>
  void for_each(const char* name, const Hook& hook) {
    for (Entry& entry : entries_) call(entry, name, hook);
  }

  std::vector<Entry> entries_ = {};
  std::vector<std::string> warnings_ = {};
};

}  // namespace cadre::control
