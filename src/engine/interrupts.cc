#include "engine/interrupts.h"

#include <time.h>

#include <atomic>
#include <cstdint>
#include <utility>

namespace cadre::engine {
namespace {

// State of the signal handler, which has no argument of its own.
std::atomic<Interrupts*> current = nullptr;
std::atomic<engine::Engine*> to_wake = nullptr;
std::atomic<int> received = 0;
std::atomic<int> requested = 0;  // by request()
std::atomic<std::int64_t> received_ms = 0;

constexpr std::int64_t kSameRequestMs = 250;

// Async-signal-safe.
std::int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

Interrupts::Interrupts(engine::Engine& engine) {
  received = 0;
  requested = 0;
  to_wake = &engine;
  current = this;
  for (Taken& signal : signals_) {
    struct sigaction action = {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    ::sigfillset(&action.sa_mask);
    ::sigaction(signal.number, nullptr, &signal.before);
    if (signal.before.sa_handler != SIG_DFL) continue;
    signal.taken = ::sigaction(signal.number, &action, nullptr) == 0;
  }
}

Interrupts::~Interrupts() {
  give_back();
  current = nullptr;
  to_wake = nullptr;
}

void Interrupts::request(int signal) { requested = signal; }

int Interrupts::signal() const { return last_signal(); }

int Interrupts::last_signal() { return received != 0 ? received : requested; }

void Interrupts::sleep(std::chrono::nanoseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  const timespec span{seconds.count(), (time - seconds).count()};
  ::nanosleep(&span, nullptr);
}

// Only async-signal-safe calls.
void Interrupts::on_signal(int number) {
  if (received != 0) {
    if (now_ms() - received_ms < kSameRequestMs) return;
    if (Interrupts* const self = current) self->give_back();
    ::raise(number);  // delivered when the handler returns
    return;
  }
  received_ms = now_ms();
  received = number;
  if (engine::Engine* const engine = to_wake) engine->wake();
}

void Interrupts::give_back() noexcept {
  for (Taken& signal : signals_) {
    if (std::exchange(signal.taken, false)) ::sigaction(signal.number, &signal.before, nullptr);
  }
}

}  // namespace cadre::engine
