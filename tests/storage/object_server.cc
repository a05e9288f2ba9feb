#include "object_server.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace cadre::storage_tests {

ObjectServer::ObjectServer() {
  std::array<int, 2> to{};
  std::array<int, 2> from{};
  if (::pipe2(to.data(), O_CLOEXEC) != 0 || ::pipe2(from.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
  std::string program = CADRE_PYTHON;
  std::string script = CADRE_OBJECT_SERVER;
  const std::array<char*, 3> arguments{program.data(), script.data(), nullptr};
  const int error = ::posix_spawn(&process_, program.c_str(), &actions, nullptr, arguments.data(), ::environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(to[0]);
  ::close(from[1]);
  input_ = to[1];
  output_ = from[0];
  if (error != 0) throw std::runtime_error("cannot start " + script);
  const std::string endpoint = "http://127.0.0.1:" + read_line();
  for (const auto& [name, value] :
       std::vector<std::pair<const char*, std::string>>{{"AWS_ENDPOINT_URL", endpoint},
                                                        {"AWS_DEFAULT_REGION", "us-east-1"},
                                                        {"AWS_ACCESS_KEY_ID", "test"},
                                                        {"AWS_SECRET_ACCESS_KEY", "test"},
                                                        {"AWS_EC2_METADATA_DISABLED", "true"}})
    ::setenv(name, value.c_str(), 1);
  tell("bucket bucket");
}

ObjectServer::~ObjectServer() {
  ::close(input_);
  ::close(output_);
  ::waitpid(process_, nullptr, 0);
}

std::string ObjectServer::tell(const std::string& command) {
  const std::string line = command + "\n";
  if (::write(input_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    throw std::runtime_error("the object server is gone");
  return read_line();
}

std::string ObjectServer::read_line() {
  std::string line;
  for (char c = 0; ::read(output_, &c, 1) == 1 && c != '\n';) line += c;
  if (line.empty()) throw std::runtime_error("the object server says nothing");
  return line;
}

}  // namespace cadre::storage_tests
