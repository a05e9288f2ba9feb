// An experiment's running time over all sessions, without the time between them, that of pauses, and that while its
// controller was stopped or its machine slept.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>

#include "tune/events.h"

namespace cadre::tune {

// The sum of the durations of all sessions. Must be told of all events in order; times are seconds since 1970.
class RunningTime {
 public:
  RunningTime() = default;

  // Records an event by the functions below.
  void handle(const Event& event, double time) {
    if (std::holds_alternative<ControllerStarted>(event)) begin_session(time);
    if (std::holds_alternative<ResumeRequested>(event) || std::holds_alternative<ExperimentInterrupted>(event))
      end_pause(time);
    advance_to(time);
    if (const auto* lost = std::get_if<TimeLost>(&event)) leave_out(lost->seconds);
    if (std::holds_alternative<PauseRequested>(event)) begin_pause();
  }

  // Begins the session of a new controller.
  void begin_session(double time) {
    state_.before += state_.last - state_.began;
    state_.began = state_.last = time;
    ++state_.sessions;
    is_paused_ = false;
  }
  // Records an event in the present session. A time before the last one, or in a pause, does not count.
  void advance_to(double time) {
    if (!is_paused_) state_.last = std::max(state_.last, time);
  }
  // Begins a pause with the last event.
  void begin_pause() { is_paused_ = true; }
  // Ends a pause, if there is one.
  void end_pause(double time) {
    if (!std::exchange(is_paused_, false)) return;
    const double pause = std::max(time - state_.last, 0.0);
    state_.began += pause;
    state_.last += pause;
  }
  // Excludes `seconds` of the present session, up to the last event. Below 0: the clock was set back by so much.
  void leave_out(double seconds) {
    if (seconds > 0 && is_paused_) return;  // does not count as it is
    if (seconds < 0) state_.last += seconds;
    state_.began = std::min(state_.began + seconds, state_.last);
  }

  bool is_paused() const { return is_paused_; }
  // Returns the running time up to the last event, in seconds.
  double seconds() const { return state_.before + state_.last - state_.began; }
  // Return the running time up to `time`, in seconds, and the number of sessions, including the present one.
  double seconds_at(double time) const {
    return is_paused_ ? seconds() : state_.before + std::max(state_.last, time) - state_.began;
  }
  std::int64_t sessions() const { return state_.sessions; }

  // The sums, for snapshots.
  struct State {
    double before = 0;  // of earlier sessions, in seconds
    double began = 0;
    double last = 0;
    std::int64_t sessions = 0;
  };
  const State& state() const { return state_; }
  RunningTime(const State& state, bool is_paused) : state_(state), is_paused_(is_paused) {}

 private:
  State state_;
  bool is_paused_ = false;
};

}  // namespace cadre::tune
