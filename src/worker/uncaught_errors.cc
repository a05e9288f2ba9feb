#include "worker/uncaught_errors.h"

#include <cxxabi.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "cadre/error.h"
#include "engine/interrupts.h"

namespace cadre::worker {
namespace {

// State of the handler, which has no argument.
::pid_t process = 0;
std::terminate_handler former = nullptr;

constexpr int kAfterSignal = 128;  // exit codes of shells for programs that a signal has ended

[[noreturn]] void end(const char* what, int code) {
  std::cout.flush();
  std::fflush(stdout);
  std::cerr.flush();
  std::fprintf(stderr, "%s: %s\n", ::program_invocation_name, what);
  ::_exit(code);  // no destructors: other threads may still use the objects
}

[[noreturn]] void on_terminate() {
  const std::exception_ptr error = ::getpid() == process ? std::current_exception() : nullptr;
  if (error != nullptr) {
    try {
      std::rethrow_exception(error);
    } catch (const Interrupted& interrupted) {
      const int signal = engine::Interrupts::last_signal();
      end(interrupted.what(), kAfterSignal + (signal != 0 ? signal : SIGINT));
    } catch (const std::exception& exception) {
      end(exception.what(), EXIT_FAILURE);
    } catch (...) {  // no message: the previous handler takes over
    }
  }
  if (former != nullptr) former();
  std::abort();
}

// Returns true if the program has installed a handler of its own.
bool has_own_handler() {
#ifdef __GLIBCXX__
  const std::terminate_handler handler = std::get_terminate();
  return handler != nullptr && handler != __gnu_cxx::__verbose_terminate_handler && handler != std::abort;
#else
  return false;
#endif
}

}  // namespace

void report_uncaught_errors() {
  if (has_own_handler()) return;
  process = ::getpid();
  former = std::set_terminate(on_terminate);
}

}  // namespace cadre::worker
