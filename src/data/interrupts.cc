#include "data/interrupts.h"

#include <atomic>
#include <chrono>

#include "cadre/data/functions.h"

namespace cadre::data {
namespace {

constexpr auto kTimeBetweenChecks = std::chrono::milliseconds(100);

std::atomic<void (*)()> interrupt_check = nullptr;

}  // namespace

void set_interrupt_check(void (*check)()) { interrupt_check = check; }

void check_interrupts() {
  if (auto* const check = interrupt_check.load()) check();
}

void wait_with_checks(std::condition_variable& changed, std::unique_lock<std::mutex>& lock) {
  if (changed.wait_for(lock, kTimeBetweenChecks) == std::cv_status::no_timeout) return;
  lock.unlock();
  check_interrupts();
  lock.lock();
}

void check_interrupts_at_times() {
  using Clock = std::chrono::steady_clock;
  thread_local Clock::time_point last = Clock::now();
  if (interrupt_check.load() == nullptr) return;
  const Clock::time_point now = Clock::now();
  if (now - last < kTimeBetweenChecks) return;
  last = now;
  check_interrupts();
}

}  // namespace cadre::data
