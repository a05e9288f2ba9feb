// A controller's clock for what others have to do in time, and its way to wait for them. Time in which the controller
// itself was stopped (Ctrl-Z, a frozen container) does not count: whoever had to report may have been stopped too, or
// has reported and was not heard.
#pragma once

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace cadre::run {

class AwakeClock {
 public:
  using TimePoint = engine::Engine::Clock::time_point;
  // No wait is longer, so that a machine that slept is noticed soon.
  static constexpr auto longest_wait = std::chrono::seconds(1);
  // So much two clocks may differ.
  static constexpr auto slack = std::chrono::milliseconds(500);

  explicit AwakeClock(engine::Engine& engine);

  // Engine::wait, for longest_wait at most. Where the time is over, everything that has come meanwhile is returned.
  std::vector<engine::Event> wait(std::optional<std::chrono::nanoseconds> timeout);

  // The engine's time without that in which this process was stopped.
  TimePoint now() const;
  // wait() returned all that had come by then: whoever is not heard of until a deadline that is not later has missed
  // it.
  TimePoint looked() const { return looked_; }
  // The same moment as the engine's clock says it.
  TimePoint on_engine(TimePoint time) const { return time + engine_.stopped(); }

  // How many seconds the wall clock has gone on by without this one since the last call: the process was stopped, the
  // machine slept, or somebody has set its clock; below 0 where that was set back. 0 where it is not worth a word.
  double take_lost_seconds() { return std::exchange(lost_seconds_, 0); }

 private:
  void compare_clocks();

  engine::Engine& engine_;
  TimePoint looked_;
  TimePoint compared_;  // when the clocks were compared last
  double wall_;         // and the wall clock then
  double lost_seconds_ = 0;
};

}  // namespace cadre::run
