#include "base/pulse.h"

namespace cadre::base {

Pulse::Pulse()
    : thread_([this] {
        std::unique_lock lock(mutex_);
        while (!end_.wait_for(lock, period, [this] { return ends_; })) beat();
      }) {}

Pulse::~Pulse() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  end_.notify_all();
  thread_.join();
}

Pulse::Clock::duration Pulse::stopped() const {
  const std::lock_guard lock(mutex_);
  beat();  // the thread may not have run since the process was resumed
  return stopped_;
}

void Pulse::beat() const {
  const Clock::time_point now = Clock::now();
  const Clock::duration slept = now - last_;
  if (slept > period + slack) stopped_ += slept - period;
  last_ = now;
}

}  // namespace cadre::base
