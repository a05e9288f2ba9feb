// How long an experiment has been running in all, without the times at which nobody ran it, or its controller was
// stopped or its machine slept.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cadre::tune {

// Told of everything that happened, in order; times are seconds since 1970.
class RunningTime {
 public:
  // A controller has begun.
  void begin_session(double time) {
    before_ += last_ - began_;
    began_ = last_ = time;
    ++sessions_;
  }
  // Something happened in the present session. A time before the last one does not count.
  void see(double time) { last_ = std::max(last_, time); }

  // So many seconds of the present session, up to what was seen last, do not count. Below 0: the clock was set back by
  // so many.
  void leave_out(double seconds) {
    if (seconds < 0) last_ += seconds;
    began_ = std::min(began_ + seconds, last_);
  }

  // Of all that happened, in seconds.
  double seconds() const { return before_ + last_ - began_; }
  // Up to `time`, in seconds; and in how many sessions, the present one included.
  double seconds_at(double time) const { return before_ + std::max(last_, time) - began_; }
  std::int64_t sessions() const { return sessions_; }

  static void fields(auto& archive, auto& time) {  // for base/archive.h
    archive("before", time.before_);
    archive("began", time.began_);
    archive("last", time.last_);
    archive("sessions", time.sessions_);
  }

 private:
  double before_ = 0;  // the earlier sessions
  double began_ = 0;
  double last_ = 0;
  std::int64_t sessions_ = 0;
};

}  // namespace cadre::tune
