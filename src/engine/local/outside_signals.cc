#include "engine/local/outside_signals.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace cadre::engine::local {
namespace {

// Used by the handler, which has no argument of its own.
WorkerTable* table_of_worker = nullptr;
std::size_t slot_of_worker = 0;
pid_t worker = 0;
pid_t server = 0;

// Calls only async-signal-safe functions.
void on_outside_signal(int signal, siginfo_t* info, void*) {
  const int keep = errno;
  const pid_t self = ::getpid();
  if (self != worker || info->si_pid == self) {
    ::signal(signal, SIG_DFL);
    ::raise(signal);  // delivered when the handler returns
  } else {
    table_of_worker->set_signal(slot_of_worker, signal);
    ::kill(server, attention_signal);
  }
  errno = keep;
}

}  // namespace

bool is_outside_signal(int signal) { return std::ranges::find(outside_signals, signal) != outside_signals.end(); }

sigset_t block_outside_signals() {
  sigset_t outside;
  sigset_t before;
  ::sigemptyset(&outside);
  for (const int signal : outside_signals) ::sigaddset(&outside, signal);
  ::pthread_sigmask(SIG_BLOCK, &outside, &before);
  return before;
}

void leave_outside_signals_to_server(WorkerTable& table, std::size_t slot) {
  table_of_worker = &table;
  slot_of_worker = slot;
  worker = ::getpid();
  server = ::getppid();
  for (const int signal : outside_signals) {
    struct sigaction action{};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) continue;
    action.sa_sigaction = on_outside_signal;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace cadre::engine::local
