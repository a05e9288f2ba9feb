#include "run/interrupts.h"

#include <time.h>

#include <atomic>
#include <utility>

namespace cadre::run {
namespace {

// What a signal handler can reach: it has no argument of its own.
std::atomic<Interrupts*> current = nullptr;
std::atomic<engine::Engine*> to_wake = nullptr;
std::atomic<int> received = 0;

}  // namespace

Interrupts::Interrupts(engine::Engine& engine) {
  received = 0;
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

int Interrupts::signal() const { return received; }

int Interrupts::last_signal() { return received; }

void Interrupts::sleep(std::chrono::nanoseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  const timespec span{seconds.count(), (time - seconds).count()};
  ::nanosleep(&span, nullptr);
}

// Everything here may be done in a signal handler.
void Interrupts::on_signal(int number) {
  received = number;
  if (Interrupts* const self = current) self->give_back();
  if (engine::Engine* const engine = to_wake) engine->wake();
}

void Interrupts::give_back() noexcept {
  for (Taken& signal : signals_) {
    if (std::exchange(signal.taken, false)) ::sigaction(signal.number, &signal.before, nullptr);
  }
}

}  // namespace cadre::run
