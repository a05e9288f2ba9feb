#include "engine/local/group_watcher.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/system_error.h"

namespace cadre::engine::local {
namespace {

// Longest wait for processes that are stuck in the kernel.
constexpr auto patience = std::chrono::seconds(10);

// Closes all descriptors: otherwise the peers of sockets and pipes would get no end-of-file when the server ends.
void close_all_descriptors() {
  if (::close_range(0, ~0U, 0) == 0) return;
  std::vector<int> open;  // Linux before 5.9
  std::error_code unknown;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", unknown))
    open.push_back(std::atoi(entry.path().filename().c_str()));
  for (const int fd : open) ::close(fd);
}

bool end_group(pid_t leader) { return ::kill(-leader, SIGKILL) != 0 && errno == ESRCH; }

[[noreturn]] void watch(const WorkerTable& table, pid_t server) {
  ::prctl(PR_SET_NAME, "cadre-watcher");
  ::setsid();
  close_all_descriptors();
  sigset_t awaited;
  ::sigemptyset(&awaited);
  ::sigaddset(&awaited, SIGTERM);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  while (::getppid() == server) ::sigwaitinfo(&awaited, nullptr);  // any process may send the signal
  std::vector<pid_t> groups = table.processes();
  for (const auto deadline = std::chrono::steady_clock::now() + patience;;) {
    std::erase_if(groups, end_group);
    if (groups.empty() || std::chrono::steady_clock::now() >= deadline) ::_exit(0);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace

std::string start_group_watcher(const WorkerTable& table) {
  const pid_t server = ::getpid();
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);  // so that the child never runs without this mask
  const pid_t watcher = ::fork();
  const std::string error = watcher < 0 ? base::last_system_error() : "";
  if (watcher == 0) watch(table, server);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return error;
}

}  // namespace cadre::engine::local
