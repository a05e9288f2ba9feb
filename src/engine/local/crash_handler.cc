#include "engine/local/crash_handler.h"

#include <execinfo.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cadre::engine::local {
namespace {

constexpr std::array crash_signals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr int most_frames = 64;
// Frames of the handler itself and of the kernel's signal frame.
constexpr int frames_of_handler = 2;
// Limit for a back trace: it waits for locks of the dynamic loader, which the crashed thread may hold.
constexpr unsigned most_seconds = 10;

// Stack of the handler: a stack that has overflowed has no room for it.
alignas(16) char alternate_stack[std::size_t{64} << 10];
std::atomic<pid_t> crashed_thread{0};
std::atomic<int> crash_signal{0};

void write_text(std::string_view text) {
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

void write_hexadecimal(std::uintptr_t number) {
  char digits[2 * sizeof number];
  std::size_t begin = sizeof digits;
  do {
    digits[--begin] = "0123456789abcdef"[number % 16];
    number /= 16;
  } while (number > 0);
  write_text({digits + begin, sizeof digits - begin});
}

// Returns the caller of a function at an address without code, such as a null pointer, from which backtrace() cannot
// unwind.
void* caller_of(const ucontext_t& context) {
#if defined(__x86_64__)
  return *reinterpret_cast<void**>(context.uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
  return reinterpret_cast<void*>(context.uc_mcontext.regs[30]);
#else
  return nullptr;
#endif
}

void write_back_trace(int signal, const siginfo_t& info, const ucontext_t& context) {
  write_text(kBackTraceMark);
  const char* const name = ::sigabbrev_np(signal);
  write_text("SIG");
  write_text(name == nullptr ? "?" : name);
  if (info.si_code > 0 && (signal == SIGSEGV || signal == SIGBUS)) {
    write_text(" at address 0x");
    write_hexadecimal(reinterpret_cast<std::uintptr_t>(info.si_addr));
  }
  write_text(":\n");
  void* frames[most_frames];
  int count = ::backtrace(frames, most_frames);
  if (count <= frames_of_handler) {
    frames[frames_of_handler] = caller_of(context);
    count = frames_of_handler + 1;
  }
  ::backtrace_symbols_fd(frames + frames_of_handler, count - frames_of_handler, STDERR_FILENO);
}

// Restores the default action. After a fault the instruction runs and faults again; a signal that was sent is raised
// again.
void end_by(int signal, bool is_fault) {
  ::signal(signal, SIG_DFL);
  if (!is_fault) ::raise(signal);
}

void on_alarm(int) {
  const int signal = crash_signal;
  ::signal(signal, SIG_DFL);
  sigset_t crash;
  ::sigemptyset(&crash);
  ::sigaddset(&crash, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &crash, nullptr);
  ::raise(signal);
}

void on_crash(int signal, siginfo_t* info, void* context) {
  const int keep = errno;
  pid_t none = 0;
  const pid_t self = ::gettid();
  if (crashed_thread.compare_exchange_strong(none, self)) {
    crash_signal = signal;
    sigset_t alarm;
    ::sigemptyset(&alarm);
    ::sigaddset(&alarm, SIGALRM);
    ::pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
    ::signal(SIGALRM, on_alarm);
    ::alarm(most_seconds);
    write_back_trace(signal, *info, *static_cast<const ucontext_t*>(context));
  } else if (none != self) {
    for (;;) ::pause();  // the thread that crashed first ends the process
  }
  errno = keep;
  end_by(signal, info->si_code > 0);
}

void install(int signal, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action{};
  if (::sigaction(signal, nullptr, &action) != 0 || (action.sa_flags & SA_SIGINFO) != 0 || action.sa_handler != SIG_DFL)
    return;
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

bool is_crash_signal(int signal) { return std::ranges::find(crash_signals, signal) != crash_signals.end(); }

void prepare_back_traces() {
  void* frame = nullptr;
  ::backtrace(&frame, 1);
}

void install_crash_handlers() {
  stack_t before{};
  if (::sigaltstack(nullptr, &before) == 0 && (before.ss_flags & SS_DISABLE) != 0) {
    const stack_t own{.ss_sp = alternate_stack, .ss_flags = 0, .ss_size = sizeof alternate_stack};
    ::sigaltstack(&own, nullptr);
  }
  for (const int signal : crash_signals) install(signal, on_crash);
}

}  // namespace cadre::engine::local
