#include "base/line_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <thread>

#include "base/seconds.h"
#include "base/spawn.h"

namespace cadre::base {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // of one line
constexpr auto kTimeToEnd = std::chrono::seconds(2);

std::string reason() { return std::strerror(errno); }

std::pair<FileDescriptor, FileDescriptor> make_pair_of_sockets() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw ProgramFailed("it cannot be started: " + reason());
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

steady_clock::time_point after(std::chrono::duration<double> time) {
  return steady_clock::now() + to_nanoseconds(time);
}

std::string describe(int status) {
  if (WIFEXITED(status)) return fmt::format("it exited with code {}", WEXITSTATUS(status));
  return fmt::format("it was ended by signal {}", WTERMSIG(status));
}

}  // namespace

// Sockets, because writing to one without a reader can be had without SIGPIPE.
LineProgram::LineProgram(const std::vector<std::string>& command) {
  auto [input, programs_input] = make_pair_of_sockets();
  auto [output, programs_output] = make_pair_of_sockets();
  const Spawned spawned =
      spawn({.command = command,
             .descriptors = {{programs_input.get(), STDIN_FILENO}, {programs_output.get(), STDOUT_FILENO}},
             .in_own_group = true});
  if (spawned.error != 0) throw ProgramFailed(fmt::format("it cannot be started: {}", std::strerror(spawned.error)));
  process_ = spawned.process;
  input_ = std::move(input);
  output_ = std::move(output);
}

LineProgram::~LineProgram() {
  if (process_ == 0) return;
  input_.reset();
  const auto deadline = after(kTimeToEnd);
  while (::waitpid(process_, nullptr, WNOHANG) == 0) {
    if (steady_clock::now() > deadline) ::kill(process_, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void LineProgram::wait_for(int file, short what, TimePoint deadline, const std::atomic<bool>& cancelled) {
  while (true) {
    if (cancelled) throw ProgramFailed("it was cancelled");
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0) throw ProgramFailed("it does not answer in time");
    ::pollfd watched{.fd = file, .events = what, .revents = 0};
    const int ready = ::poll(&watched, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 100)));
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) throw ProgramFailed("it cannot be waited for: " + reason());
  }
}

// The program has closed one of its ends, so it ends or has ended.
void LineProgram::fail() {
  int status = 0;
  const auto deadline = after(kTimeToEnd);
  while (steady_clock::now() < deadline) {
    if (::waitpid(process_, &status, WNOHANG) == process_) {
      process_ = 0;
      throw ProgramFailed(describe(status));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  throw ProgramFailed("it has closed its standard input or output");
}

void LineProgram::send(std::string_view line, std::chrono::duration<double> timeout,
                       const std::atomic<bool>& cancelled) {
  const TimePoint deadline = after(timeout);
  const std::string text = std::string(line) + "\n";
  for (std::string_view rest = text; !rest.empty();) {
    wait_for(input_.get(), POLLOUT, deadline, cancelled);
    const ::ssize_t sent = ::send(input_.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) rest.remove_prefix(static_cast<std::size_t>(sent));
    if (sent < 0 && errno != EAGAIN && errno != EINTR) fail();
  }
}

std::string LineProgram::receive(std::chrono::duration<double> timeout, const std::atomic<bool>& cancelled) {
  const TimePoint deadline = after(timeout);
  std::size_t end = received_.find('\n');
  while (end == received_.npos) {
    if (received_.size() > kMostBytes) throw ProgramFailed("it has written a line of more than 64 MiB");
    wait_for(output_.get(), POLLIN, deadline, cancelled);
    std::array<char, 65536> buffer{};
    const ::ssize_t count = ::recv(output_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) fail();
    const std::size_t before = received_.size();
    if (count > 0) received_.append(buffer.data(), static_cast<std::size_t>(count));
    end = received_.find('\n', before);
  }
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

bool can_be_started(const std::vector<std::string>& command) {
  if (command.empty() || command.front().empty()) return false;
  const auto is_program = [](const std::filesystem::path& path) {
    std::error_code error;
    return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
  };
  const std::string& name = command.front();
  if (name.find('/') != name.npos) return is_program(name);
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (is_program(std::filesystem::path(folder) / name)) return true;
  }
  return false;
}

}  // namespace cadre::base
