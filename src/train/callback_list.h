// The callbacks of a training run: calls them, and disables callbacks that throw.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cadre/train_callback.h"

namespace cadre::train {

class CallbackList {
 public:
  explicit CallbackList(const Callbacks& callbacks);

  bool empty() const { return entries_.empty(); }

  void on_start(const RunContext& run);
  // `metrics`: by rank, at least those of rank 0.
  void after_reports(const RunContext& run, const std::vector<Metrics>& metrics,
                     const std::optional<Checkpoint>& checkpoint);
  void on_checkpoint(const RunContext& run, const Checkpoint& checkpoint);
  void after_validation(const RunContext& run, const ReportedCheckpoint& checkpoint);
  void after_exception(const RunContext& run, const std::map<std::int64_t, std::string>& failures);
  void on_end(const RunContext& run);

  // Returns one message for each callback disabled since the last call.
  std::vector<std::string> take_warnings();

 private:
  struct Entry {
    std::shared_ptr<Callback> callback;
    bool is_on = true;
  };

  template <class Call>
  void for_each(const char* hook, Call call);

  std::vector<Entry> entries_ = {};
  std::vector<std::string> warnings_ = {};
};

}  // namespace cadre::train
