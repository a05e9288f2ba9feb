// A controller's clock for deadlines of other processes, and its way to wait for events. Time in which the controller
// itself was stopped (Ctrl-Z, a frozen container) does not count: the workers may have been stopped too, or their
// reports were not read.
#pragma once

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace cadre::control {

class AwakeClock {
 public:
  using TimePoint = engine::Engine::Clock::time_point;
  // Maximum wait, so that the sleep of a machine is noticed soon.
  static constexpr auto longest_wait = std::chrono::seconds(1);
  // Tolerated difference between the two clocks.
  static constexpr auto slack = std::chrono::milliseconds(500);

  explicit AwakeClock(engine::Engine& engine);

  // Waits as Engine::wait does, but at most for longest_wait. If the time is over, returns all events that have arrived
  // meanwhile.
  std::vector<engine::Event> wait(std::optional<std::chrono::nanoseconds> timeout);

  // Returns the engine's time without the time in which this process was stopped.
  TimePoint now() const;
  // Returns the time up to which wait() has returned all events: a process without a report by then has missed any
  // deadline that is not later.
  TimePoint last_reading() const { return last_reading_; }
  // Converts a time to the engine's clock.
  TimePoint on_engine(TimePoint time) const { return time + engine_.stopped(); }

  // Returns the seconds by which the wall clock has advanced more than this clock since the last call: the process was
  // stopped, the machine slept, or the wall clock was set; negative if it was set back. 0 for less than `slack`.
  double take_lost_seconds() { return std::exchange(lost_seconds_, 0); }

 private:
  void compare_clocks();

  engine::Engine& engine_;
  TimePoint last_reading_;
  TimePoint compared_;  // time of the last comparison of the clocks
  double wall_;         // wall clock at that time
  double lost_seconds_ = 0;
};

}  // namespace cadre::control
