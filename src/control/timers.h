// The timers that a core has started, and their due times.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace cadre::control {

// A Timer has key(): a started timer replaces the one with the same key.
template <class Timer>
class Timers {
 public:
  using TimePoint = engine::Engine::Clock::time_point;

  void start(const Timer& timer, TimePoint due) {
    const Key key = timer.key();
    if (const auto earlier = timers_.find(key); earlier != timers_.end()) order_.erase({earlier->second.due, key});
    timers_[key] = {timer, due};
    order_.emplace(due, key);
  }
  // Returns the earliest due time; empty: no timer runs.
  std::optional<TimePoint> next() const { return order_.empty() ? std::nullopt : std::optional(order_.begin()->first); }
  // Removes and returns the timers that are due at `now`, the earliest first.
  std::vector<Timer> take_due(TimePoint now) {
    std::vector<Timer> due;
    while (!order_.empty() && order_.begin()->first <= now) {
      const auto entry = timers_.find(order_.begin()->second);
      due.push_back(entry->second.timer);
      timers_.erase(entry);
      order_.erase(order_.begin());
    }
    return due;
  }

 private:
  using Key = decltype(std::declval<const Timer&>().key());
  struct Entry {
    Timer timer;
    TimePoint due;
  };

  std::map<Key, Entry> timers_;
  std::set<std::pair<TimePoint, Key>> order_;
};

}  // namespace cadre::control
