// Workers that were ended by a signal which asks programs to end. Where somebody sends it to every process of a job,
// the end of a worker may be seen before the signal that the controller gets itself, and would look like a failure. So
// such an end waits a moment, with everything that the engine says after it: the order of events stays as it was.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <vector>

#include "engine/engine.h"

namespace cadre::run {

class SignalledEnds {
 public:
  using TimePoint = engine::Engine::Clock::time_point;
  // Longer than whoever signals all processes of a job takes for that.
  static constexpr auto patience = std::chrono::seconds(1);

  // Takes what has arrived, and returns what may be handled now: all of it, unless a worker was ended by such a signal
  // and the controller, which is not interrupted, may still get it.
  std::vector<engine::Event> pass(std::vector<engine::Event> arrived, bool interrupted, TimePoint now);
  // When the rest may be handled; empty: nothing is held back.
  std::optional<TimePoint> due() const;

 private:
  struct Held {
    engine::Event event;
    std::optional<TimePoint> due;  // of such an end
  };
  std::deque<Held> held_;  // from the first such end on
};

}  // namespace cadre::run
