#include "tune/program/child.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/seconds.h"
#include "base/spawn.h"
#include "base/system_error.h"
#include "cadre/error.h"

namespace cadre::tune {
namespace {

base::Spawned start_process(const ChildStart& start) {
  std::vector<std::pair<int, int>> descriptors;
  if (start.output >= 0) descriptors.emplace_back(start.output, STDOUT_FILENO);
  descriptors.emplace_back(start.report, kReportDescriptor);
  return base::spawn({.command = start.command,
                      .environment = start.environment,
                      .directory = start.directory,
                      .descriptors = std::move(descriptors)});
}

// Returns the children of a process; none if it is gone.
std::vector<::pid_t> children_of(::pid_t process) {
  std::vector<::pid_t> children;
  std::ifstream file(fmt::format("/proc/{0}/task/{0}/children", process));
  for (::pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

void send_below(::pid_t process, int signal) {
  for (const ::pid_t child : children_of(process)) {
    send_below(child, signal);
    ::kill(child, signal);
  }
}

// Kills everything below this process; orphans have become its children.
void kill_descendants() {
  const ::pid_t self = ::getpid();
  for (std::vector<::pid_t> children = children_of(self); !children.empty(); children = children_of(self)) {
    for (const ::pid_t child : children) {
      send_below(child, SIGKILL);
      ::kill(child, SIGKILL);
      while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  }
}

}  // namespace

Child::Child(const ChildStart& start) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const base::Spawned spawned = start_process(start);
  if (spawned.error != 0) {
    const std::string place = start.directory.empty() ? "" : " in " + start.directory;
    throw Error(fmt::format("cannot start {}{}: {}", start.command.front(), place, std::strerror(spawned.error)));
  }
  process_ = spawned.process;
  end_ = base::FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, process_, 0)));
  if (end_) return;
  const std::string reason = base::last_system_error();
  ::kill(process_, SIGKILL);
  kill_descendants();
  throw Error("cannot watch " + start.command.front() + ": " + reason);
}

Child::~Child() { kill_descendants(); }

std::optional<int> Child::status() {
  int status = 0;
  if (!status_ && ::waitpid(process_, &status, WNOHANG) == process_) status_ = status;
  return status_;
}

bool Child::wait(std::chrono::duration<double> time) {
  ::pollfd end{.fd = end_.get(), .events = POLLIN, .revents = 0};
  const auto deadline = std::chrono::steady_clock::now() + base::to_nanoseconds(time);
  while (!status()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    ::poll(&end, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
  }
  return true;
}

void Child::send(int signal) {
  if (!status()) ::kill(process_, signal);
}

void Child::send_to_all(int signal) {
  if (status()) return;
  send_below(process_, signal);
  ::kill(process_, signal);
}

std::string describe_status(int status) {
  if (WIFEXITED(status)) return fmt::format("exit code {}", WEXITSTATUS(status));
  return fmt::format("signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
}

std::optional<int> signal_of(const std::string& name) {
  const std::string short_name = name.starts_with("SIG") ? name.substr(3) : name;
  for (int signal = 1; signal < NSIG; ++signal) {
    const char* const abbreviation = ::sigabbrev_np(signal);
    if (abbreviation != nullptr && short_name == abbreviation) return signal;
  }
  return {};
}

}  // namespace cadre::tune
