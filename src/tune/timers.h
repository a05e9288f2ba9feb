// The timers that the core has started, and their due times.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "engine/engine.h"
#include "tune/events.h"

namespace cadre::tune {

class Timers {
 public:
  using TimePoint = engine::Engine::Clock::time_point;

  // Replaces the timer of the same kind and trial.
  void start(const Timer& timer, TimePoint due);
  std::optional<TimePoint> next() const;
  // Removes and returns the timers that are due at `now`, the earliest first.
  std::vector<Timer> take_due(TimePoint now);

 private:
  using Key = std::pair<Timer::Kind, TrialIndex>;
  struct Entry {
    Timer timer;
    TimePoint due;
  };

  std::map<Key, Entry> timers_;
  std::set<std::pair<TimePoint, Key>> order_;
};

}  // namespace cadre::tune
