// Workers that were ended by a signal to end (SIGINT, SIGTERM, SIGHUP). If it is sent to every process of a job, the
// controller may receive the end of a worker before the signal itself, and would treat it as a failure. Therefore such
// an end is held back for a moment, with all later events of the engine: the order of events stays the same.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <vector>

#include "engine/engine.h"

namespace cadre::control {

class SignalledEnds {
 public:
  using TimePoint = engine::Engine::Clock::time_point;
  // Time that an end is held back: longer than it takes to signal all processes of a job.
  static constexpr auto patience = std::chrono::seconds(1);

  // Accepts the events that have arrived, and returns those to handle now: all of them, unless a worker was ended by
  // such a signal and the controller, which is not interrupted, may still get it.
  std::vector<engine::Event> pass(std::vector<engine::Event> arrived, bool interrupted, TimePoint now);
  // Returns when the next held event may be handled; empty: nothing is held back.
  std::optional<TimePoint> due() const;

 private:
  struct Held {
    engine::Event event;
    std::optional<TimePoint> due;  // set for such an end
  };
  std::deque<Held> held_;  // from the first such end on
};

}  // namespace cadre::control
