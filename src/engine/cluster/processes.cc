#include "engine/cluster/processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "base/system_error.h"
#include "cadre/error.h"
#include "engine/cluster/ordinal.h"
#include "engine/engine.h"

extern char** environ;

namespace cadre::engine::cluster {
namespace {

// Returns pointers to the texts, and a null pointer.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!variables.contains(text.substr(0, text.find('=')))) environment.push_back(text);
  }
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

// Forks and executes a program in a session of its own, which ends with this process. It ignores Ctrl-C in the
// controller's terminal that way. Returns its id; below 0 after an error.
pid_t execute(const std::vector<char*>& command, const std::vector<char*>& environment, const char* directory) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (*directory != '\0' && ::chdir(directory) != 0) ::_exit(126);
  ::execvpe(command.front(), command.data(), environment.data());
  ::_exit(127);
}

std::string describe(const siginfo_t& end) {
  const bool exited = end.si_code == CLD_EXITED;
  return fmt::format("its process {}",
                     to_string(Exit{.kind = exited ? Exit::Kind::code : Exit::Kind::signal, .value = end.si_status}));
}

}  // namespace

Processes::~Processes() {
  for (const auto& [place, process] : processes_) {
    ::kill(process.id, SIGKILL);
    ::waitpid(process.id, nullptr, 0);
  }
}

void Processes::request(const NodeRequest& request, const AgentStart& start) {
  for (std::int64_t ordinal = 0; ordinal < request.nodes; ++ordinal) start_agent({request.id, ordinal}, start);
}

void Processes::start_agent(const Place& place, const AgentStart& start) {
  std::map<std::string, std::string> variables = start.variables;
  variables[kOrdinalVariable] = std::to_string(place.second);
  std::vector<std::string> command = start.command;
  std::vector<std::string> environment = environment_with(variables);
  const pid_t id = execute(pointers(command), pointers(environment), start.directory.c_str());
  base::FileDescriptor descriptor(id < 0 ? -1 : static_cast<int>(::syscall(SYS_pidfd_open, id, 0)));
  if (!descriptor) {
    const std::string reason = base::last_system_error();
    if (id > 0) {
      ::kill(id, SIGKILL);
      ::waitpid(id, nullptr, 0);
    }
    events_.emplace_back(
        AgentEnded{place.first, place.second, "cannot start " + start.command.front() + ": " + reason});
    return;
  }
  const int watched = descriptor.get();
  processes_[place] = {id, std::move(descriptor)};
  poller_.watch(watched, [this, place] { reap(place); });
}

void Processes::reap(const Place& place) {
  const auto found = processes_.find(place);
  siginfo_t end{};
  if (::waitid(P_PID, static_cast<id_t>(found->second.id), &end, WEXITED | WNOHANG) != 0 || end.si_pid == 0) return;
  poller_.unwatch(found->second.descriptor.get());
  processes_.erase(found);
  events_.emplace_back(AgentEnded{place.first, place.second, describe(end)});
}

void Processes::release(std::uint64_t request) {
  for (const auto& [place, process] : processes_) {
    if (place.first == request) ::kill(process.id, SIGKILL);
  }
}

void Processes::release(std::uint64_t request, std::int64_t ordinal) {
  if (const pid_t id = process(request, ordinal)) ::kill(id, SIGKILL);
}

std::vector<ProviderEvent> Processes::take_events() {
  while (poller_.wait(std::chrono::nanoseconds(0))) {
  }
  return std::exchange(events_, {});
}

pid_t Processes::process(std::uint64_t request, std::int64_t ordinal) const {
  const auto found = processes_.find({request, ordinal});
  return found == processes_.end() ? 0 : found->second.id;
}

}  // namespace cadre::engine::cluster
