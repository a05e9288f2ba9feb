// An experiment's running time over all sessions, without the time between them or while its controller was stopped or
// its machine slept.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cadre::tune {

// The sum of the durations of all sessions. Must be told of all events in order; times are seconds since 1970.
class RunningTime {
 public:
  RunningTime() = default;

  // Begins the session of a new controller.
  void begin_session(double time) {
    state_.before += state_.last - state_.began;
    state_.began = state_.last = time;
    ++state_.sessions;
  }
  // Records an event in the present session. A time before the last one does not count.
  void advance_to(double time) { state_.last = std::max(state_.last, time); }

  // Excludes `seconds` of the present session, up to the last event. Below 0: the clock was set back by so much.
  void leave_out(double seconds) {
    if (seconds < 0) state_.last += seconds;
    state_.began = std::min(state_.began + seconds, state_.last);
  }

  // Returns the running time up to the last event, in seconds.
  double seconds() const { return state_.before + state_.last - state_.began; }
  // Return the running time up to `time`, in seconds, and the number of sessions, including the present one.
  double seconds_at(double time) const { return state_.before + std::max(state_.last, time) - state_.began; }
  std::int64_t sessions() const { return state_.sessions; }

  // The sums, for snapshots.
  struct State {
    double before = 0;  // of earlier sessions, in seconds
    double began = 0;
    double last = 0;
    std::int64_t sessions = 0;
  };
  const State& state() const { return state_; }
  explicit RunningTime(const State& state) : state_(state) {}

 private:
  State state_;
};

}  // namespace cadre::tune
