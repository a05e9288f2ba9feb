// An experiment's running time over all sessions, without the time between them or while its controller was stopped or
// its machine slept.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cadre::tune {

// The sum of the durations of all sessions. Must be told of all events in order; times are seconds since 1970.
class RunningTime {
 public:
  // Begins the session of a new controller.
  void begin_session(double time) {
    before_ += last_ - began_;
    began_ = last_ = time;
    ++sessions_;
  }
  // Records an event in the present session. A time before the last one does not count.
  void see(double time) { last_ = std::max(last_, time); }

  // Excludes `seconds` of the present session, up to the last event. Below 0: the clock was set back by so much.
  void leave_out(double seconds) {
    if (seconds < 0) last_ += seconds;
    began_ = std::min(began_ + seconds, last_);
  }

  // Returns the running time up to the last event, in seconds.
  double seconds() const { return before_ + last_ - began_; }
  // Return the running time up to `time`, in seconds, and the number of sessions, including the present one.
  double seconds_at(double time) const { return before_ + std::max(last_, time) - began_; }
  std::int64_t sessions() const { return sessions_; }

  static void fields(auto& archive, auto& time) {  // for base/archive.h
    archive("before", time.before_);
    archive("began", time.began_);
    archive("last", time.last_);
    archive("sessions", time.sessions_);
  }

 private:
  double before_ = 0;  // of earlier sessions, in seconds
  double began_ = 0;
  double last_ = 0;
  std::int64_t sessions_ = 0;
};

}  // namespace cadre::tune
