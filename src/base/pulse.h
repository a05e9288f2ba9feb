// How long this process was stopped: by Ctrl-Z, in a frozen container, on a machine that had no time for it. A process
// is not told of that. A thread that sleeps for short times finds that it slept for a long one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace cadre::base {

class Pulse {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr auto period = std::chrono::milliseconds(200);
  // As late a thread may be on a machine that has much to do.
  static constexpr auto slack = std::chrono::milliseconds(500);

  Pulse();
  ~Pulse();
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

  // In all, since this object was made. Any thread.
  Clock::duration stopped() const;

 private:
  void beat() const;  // with the mutex

  mutable std::mutex mutex_;
  mutable Clock::time_point last_ = Clock::now();
  mutable Clock::duration stopped_{0};
  bool ends_ = false;
  std::condition_variable end_;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace cadre::base
