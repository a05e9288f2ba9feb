#include "scenario.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

namespace cadre::system_tests {
namespace {

constexpr int patience_ms = 60'000;
constexpr std::string_view option = "--scenario=";

std::map<std::string, Scenario>& scenarios() {
  static std::map<std::string, Scenario> instance;
  return instance;
}

std::pair<base::FileDescriptor, base::FileDescriptor> make_pipe() {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  return {base::FileDescriptor(ends[0]), base::FileDescriptor(ends[1])};
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> found;
  for (std::string& text : texts) found.push_back(text.data());
  found.push_back(nullptr);
  return found;
}

}  // namespace

bool register_scenario(const char* name, Scenario scenario) { return scenarios().emplace(name, scenario).second; }

std::optional<Scenario> find_scenario(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with(option)) return scenarios().at(std::string(argument.substr(option.size())));
  }
  return std::nullopt;
}

ScenarioProcess::ScenarioProcess(const std::string& name, std::vector<std::string> arguments,
                                 std::vector<std::string> environment) {
  auto [output, their_output] = make_pipe();
  auto [their_input, input] = make_pipe();
  arguments.insert(arguments.begin(), {"cadre_system_tests", std::string(option) + name});
  for (char** entry = ::environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, their_input.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, their_output.get(), STDOUT_FILENO);
  EXPECT_EQ(::posix_spawn(&process_, "/proc/self/exe", &actions, nullptr, pointers(arguments).data(),
                          pointers(environment).data()),
            0);
  ::posix_spawn_file_actions_destroy(&actions);
  output_ = std::move(output);
  input_ = std::move(input);
}

ScenarioProcess::~ScenarioProcess() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

std::string ScenarioProcess::line() {
  for (;;) {
    if (const std::size_t end = buffered_.find('\n'); end != std::string::npos) {
      std::string line = buffered_.substr(0, end);
      buffered_.erase(0, end + 1);
      return line;
    }
    char bytes[4096];
    pollfd ready{output_.get(), POLLIN, 0};
    const ssize_t got = ::poll(&ready, 1, patience_ms) == 1 ? ::read(output_.get(), bytes, sizeof bytes) : 0;
    if (got <= 0) {
      ADD_FAILURE() << "the scenario ended, or said nothing for a minute, after \"" << buffered_ << "\"";
      return {};
    }
    buffered_.append(bytes, static_cast<std::size_t>(got));
  }
}

void ScenarioProcess::go_on() { EXPECT_EQ(::write(input_.get(), "\n", 1), 1); }

int ScenarioProcess::wait() {
  EXPECT_TRUE(Watched(process_).ends_within(patience_ms)) << "the scenario does not end";
  ::kill(process_, SIGKILL);
  int status = 0;
  ::waitpid(std::exchange(process_, -1), &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void wait_for_test() {
  char byte = 0;
  if (::read(STDIN_FILENO, &byte, 1) != 1) ::_exit(9);
}

Watched::Watched(pid_t process) : fd_(static_cast<int>(::syscall(SYS_pidfd_open, process, 0))) {}

bool Watched::ends_within(int timeout_ms) const {
  if (!fd_) return true;  // it was gone already
  pollfd end{fd_.get(), POLLIN, 0};
  return ::poll(&end, 1, timeout_ms) == 1;
}

}  // namespace cadre::system_tests
