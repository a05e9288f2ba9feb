#include "python_server.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace cadre::storage_tests {

PythonServer::PythonServer(const std::string& script, std::vector<std::string> arguments) {
  std::array<int, 2> to{};
  std::array<int, 2> from{};
  if (::pipe2(to.data(), O_CLOEXEC) != 0 || ::pipe2(from.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
  arguments.insert(arguments.begin(), {CADRE_PYTHON, std::string(CADRE_STORAGE_TESTS "/") + script});
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const int error = ::posix_spawn(&process_, CADRE_PYTHON, &actions, nullptr, pointers.data(), ::environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(to[0]);
  ::close(from[1]);
  input_ = to[1];
  output_ = from[0];
  if (error != 0) throw std::runtime_error("cannot start " + script);
  port_ = read_line();
}

PythonServer::~PythonServer() {
  ::close(input_);
  ::close(output_);
  ::waitpid(process_, nullptr, 0);
}

std::string PythonServer::tell(const std::string& command) {
  const std::string line = command + "\n";
  if (::write(input_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    throw std::runtime_error("the server is gone");
  return read_line();
}

std::string PythonServer::read_line() {
  std::string line;
  for (char c = 0; ::read(output_, &c, 1) == 1 && c != '\n';) line += c;
  if (line.empty()) throw std::runtime_error("the server says nothing");
  return line;
}

}  // namespace cadre::storage_tests
