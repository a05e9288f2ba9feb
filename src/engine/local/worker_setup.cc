#include "engine/local/worker_setup.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "base/file_descriptor.h"
#include "base/library_threads.h"
#include "base/system_error.h"
#include "engine/local/crash_handler.h"
#include "engine/local/outside_signals.h"

namespace cadre::engine::local {
namespace {

// Added to oom_score_adj, in thousandths of the memory; the kernel also counts the worker's size.
constexpr int added_oom_score = 500;

std::string append_output_to(int stream, const std::string& path) {
  // O_NONBLOCK: the path may be a pipe.
  constexpr int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  const base::FileDescriptor file(::open(path.c_str(), flags | O_NONBLOCK, 0666));
  struct stat found{};
  if (file && ::fstat(file.get(), &found) == 0 && !S_ISREG(found.st_mode))
    return "cannot write " + path + ": it is no regular file";
  if (file && ::fcntl(file.get(), F_SETFL, O_APPEND) == 0 && ::dup2(file.get(), stream) >= 0) return {};
  const std::string full = errno == ENOSPC || errno == EDQUOT ? "the disk is full: " : "";
  return full + "cannot write " + path + ": " + base::last_system_error();
}

void set_thread_count(int threads) {
  const std::string count = std::to_string(threads);
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}) ::setenv(name, count.c_str(), 1);
  base::set_library_threads(threads);  // of those that have already read their variables
}

// Raises the out-of-memory score. Best effort: without /proc the worker is not the first to be killed.
void raise_oom_score() {
  const base::FileDescriptor file(::open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC));
  char text[16] = {};
  if (!file || ::pread(file.get(), text, sizeof text - 1, 0) <= 0) return;
  const std::string raised = std::to_string(std::min(1000, std::atoi(text) + added_oom_score));
  if (::pwrite(file.get(), raised.data(), raised.size(), 0) < 0) return;
}

// Returns the bytes that RLIMIT_DATA counts.
std::optional<std::uint64_t> allocated_bytes() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmData:")) return std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10) << 10;
  }
  return std::nullopt;
}

std::string limit_memory(std::uint64_t bytes) {
  const std::optional<std::uint64_t> now = allocated_bytes();
  if (!now) return "cannot limit its memory: /proc/self/status does not say what it uses";
  rlimit limit{};
  ::getrlimit(RLIMIT_DATA, &limit);  // the limits of the whole program; RLIM_INFINITY is the largest number
  limit.rlim_cur = std::min(limit.rlim_cur, *now + std::min(limit.rlim_max - std::min(limit.rlim_max, *now), bytes));
  limit.rlim_max = limit.rlim_cur + std::min(limit.rlim_max - limit.rlim_cur, memory_reserve_bytes);
  if (::setrlimit(RLIMIT_DATA, &limit) != 0) return "cannot limit its memory: " + base::last_system_error();
  return {};
}

}  // namespace

void prepare_for_preload() {
  // MKL would keep the number found there, also in workers; without it MKL uses as many threads as OpenMP, also when a
  // trial gets other resources.
  ::unsetenv("MKL_NUM_THREADS");
  ::setenv("OMP_NUM_THREADS", "1", 1);
  base::set_library_threads(1);
}

std::string set_up_worker(const WorkerSetup& setup) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != setup.server) ::_exit(1);  // the server ended before the line above
  ::setpgid(0, 0);
  ::prctl(PR_SET_NAME, "cadre-worker");
  for (const int fd : setup.foreign) ::close(fd);
  for (const auto& [stream, name] : {std::pair{STDOUT_FILENO, "/stdout"}, std::pair{STDERR_FILENO, "/stderr"}}) {
    if (std::string failure = append_output_to(stream, setup.directory + name); !failure.empty()) return failure;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // so that a crash does not lose complete lines
  set_thread_count(setup.threads);
  raise_oom_score();
  leave_outside_signals_to_server(*setup.table, setup.slot);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  install_crash_handlers();
  return setup.memory_bytes ? limit_memory(*setup.memory_bytes) : "";
}

void prepare_for_workers() {
  const base::FileDescriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (nothing) ::dup2(nothing.get(), STDIN_FILENO);
  for (int signal = 1; signal < NSIG; ++signal) {
    if (is_crash_signal(signal)) continue;
    struct sigaction action{};
    const bool is_ignored = ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
    if (is_outside_signal(signal) && is_ignored) continue;
    ::signal(signal, SIG_DFL);  // fails for SIGKILL, SIGSTOP and libc's own signals
  }
  prepare_back_traces();
}

}  // namespace cadre::engine::local
