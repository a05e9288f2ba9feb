// Measures how long this process was stopped: by Ctrl-Z, in a frozen container, or on an overloaded machine. The
// system does not notify the process, so a thread sleeps for short periods and checks how long each sleep really
// took.
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
  // Delay of the thread that is normal on a busy machine.
  static constexpr auto slack = std::chrono::milliseconds(500);

  Pulse();
  ~Pulse();
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

  // Returns the total time stopped since this object was made. Any thread.
  Clock::duration stopped() const;

 private:
  void beat() const;  // requires the mutex

  mutable std::mutex mutex_;
  mutable Clock::time_point last_ = Clock::now();
  mutable Clock::duration stopped_{0};
  bool ends_ = false;
  std::condition_variable end_;
  std::thread thread_;  // last: it uses the other members
};

}  // namespace cadre::base
