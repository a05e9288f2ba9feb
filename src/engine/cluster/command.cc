#include "engine/cluster/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "base/system_error.h"
#include "cadre/error.h"

namespace cadre::engine::cluster {
namespace {

[[noreturn]] void throw_not_started(const CommandStart& start, const std::string& reason) {
  throw EngineError(
      fmt::format("cannot start {}: {}", start.arguments.empty() ? "nothing" : start.arguments.front(), reason));
}

std::pair<base::FileDescriptor, base::FileDescriptor> make_pipe(const CommandStart& start) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_not_started(start, base::last_system_error());
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {base::FileDescriptor(ends[0]), base::FileDescriptor(ends[1])};
}

// Makes a file in memory: its reader does not wait for this process, and this process does not wait for its reader.
base::FileDescriptor make_input(const CommandStart& start) {
  base::FileDescriptor input(::memfd_create("cadre-input", MFD_CLOEXEC));
  if (!input) throw_not_started(start, base::last_system_error());
  for (std::string_view rest = start.input; !rest.empty();) {
    const ::ssize_t count = ::write(input.get(), rest.data(), rest.size());
    if (count < 0 && errno != EINTR) throw_not_started(start, base::last_system_error());
    if (count > 0) rest.remove_prefix(static_cast<std::size_t>(count));
  }
  ::lseek(input.get(), 0, SEEK_SET);
  return input;
}

// Makes one socket for both directions, because this process can write to it without SIGPIPE.
std::pair<base::FileDescriptor, base::FileDescriptor> make_sockets(const CommandStart& start) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw_not_started(start, base::last_system_error());
  return {base::FileDescriptor(ends[0]), base::FileDescriptor(ends[1])};
}

// Writes the input for the other end to read later: all of it must fit into the socket.
void put_into(const base::FileDescriptor& session, const CommandStart& start) {
  const int size = static_cast<int>(std::min<std::size_t>(start.input.size() * 2, std::size_t{1} << 30));
  ::setsockopt(session.get(), SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  const std::string& input = start.input;
  if (::send(session.get(), input.data(), input.size(), MSG_DONTWAIT | MSG_NOSIGNAL) != std::ssize(input))
    throw_not_started(start, fmt::format("its input of {} bytes is too long", input.size()));
}

// Returns a descriptor above those of the standard streams, which the child's replace one after the other. One below is
// given where this process has closed its own.
base::FileDescriptor above_standard_streams(base::FileDescriptor fd, const CommandStart& start) {
  if (fd.get() > STDERR_FILENO) return fd;
  base::FileDescriptor above(::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!above) throw_not_started(start, base::last_system_error());
  return above;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

struct Child {
  ::pid_t parent;
  int input, output, errors;
  int death_signal;
  const char* directory;  // or null
  char* const* arguments;
  char* const* environment;
  int fault = 0;  // errno, written by the child
};

// Runs between vfork and exec in the memory of the parent: system calls only.
[[noreturn]] void run(Child& child) {
  for (int signal = 1; signal <= SIGRTMAX; ++signal) ::signal(signal, SIG_DFL);  // ignored ones would stay ignored
  ::sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, child.death_signal);
  if (::getppid() != child.parent) ::_exit(127);  // the parent died before prctl
  ::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
  if (::dup2(child.input, STDIN_FILENO) >= 0 && ::dup2(child.output, STDOUT_FILENO) >= 0 &&
      ::dup2(child.errors, STDERR_FILENO) >= 0 && (child.directory == nullptr || ::chdir(child.directory) == 0))
    ::execvpe(child.arguments[0], child.arguments, child.environment);
  child.fault = errno;
  ::_exit(127);
}

// vfork, because a fork copies the page tables of a process that may have hundreds of gigabytes mapped; posix_spawn
// sets no death signal.
::pid_t start_child(Child& child) {
  ::sigset_t all;
  ::sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // no handler of this process runs in the child
  const ::pid_t process = ::vfork();              // NOLINT(clang-analyzer-security.insecureAPI.vfork)
  if (process == 0) run(child);                   // NOLINT(clang-analyzer-unix.Vfork)
  if (process < 0) child.fault = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return process;
}

// Returns the bytes that are there; closes the pipe at its end.
std::string read_pipe(base::FileDescriptor& pipe, std::size_t most) {
  std::string read;
  std::array<char, 65536> buffer;
  while (pipe && read.size() < most) {
    const ::ssize_t count = ::read(pipe.get(), buffer.data(), buffer.size());
    if (count > 0) {
      read.append(buffer.data(), static_cast<std::size_t>(count));
    } else if (count == 0) {
      pipe.reset();
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      pipe.reset();
    }
  }
  return read;
}

constexpr std::size_t kMostAtATime = std::size_t{1} << 20;

}  // namespace

Command::Command(const CommandStart& start) : most_output_(start.most_output) {
  if (start.arguments.empty()) throw_not_started(start, "no program is given");
  base::FileDescriptor input;
  base::FileDescriptor output;
  base::FileDescriptor childs_output;
  base::FileDescriptor session;
  if (start.carries_session) {
    std::tie(session, input) = make_sockets(start);
    if (!start.input.empty()) put_into(session, start);
  } else {
    input = make_input(start);
    std::tie(output, childs_output) = make_pipe(start);
  }
  auto [errors, childs_errors] = make_pipe(start);
  input = above_standard_streams(std::move(input), start);
  if (childs_output) childs_output = above_standard_streams(std::move(childs_output), start);
  childs_errors = above_standard_streams(std::move(childs_errors), start);
  const std::vector<char*> arguments = pointers_to(start.arguments);
  const std::vector<char*> environment = pointers_to(start.environment);
  Child child{.parent = ::getpid(),
              .input = input.get(),
              .output = start.carries_session ? input.get() : childs_output.get(),
              .errors = childs_errors.get(),
              .death_signal = start.death_signal,
              .directory = start.directory.empty() ? nullptr : start.directory.c_str(),
              .arguments = arguments.data(),
              .environment = environment.data()};
  process_ = start_child(child);
  if (child.fault != 0) {
    while (process_ > 0 && ::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
    throw_not_started(start, std::strerror(child.fault));
  }
  end_ = base::FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, process_, 0)));
  output_pipe_ = std::move(output);
  errors_pipe_ = std::move(errors);
  session_ = std::move(session);
}

Command::Command(::pid_t process, base::FileDescriptor end)
    : process_(process), is_child_(false), end_(std::move(end)), most_output_(0) {}

std::unique_ptr<Command> Command::take_over(::pid_t process, std::string_view mark) {
  // Before its environment is read: if the mark is there, the descriptor is that of the same process.
  base::FileDescriptor end(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  if (!end || mark.empty()) return nullptr;
  try {
    if (base::read_file(fmt::format("/proc/{}/environ", process)).find(mark) == std::string::npos) return nullptr;
  } catch (const StorageError&) {  // it has ended, or is another user's
    return nullptr;
  }
  return std::unique_ptr<Command>(new Command(process, std::move(end)));
}

Command::~Command() {
  if (has_ended()) return;
  kill(SIGKILL);
  const auto deadline = std::chrono::steady_clock::now() + kMostEndTime;
  while (is_child_ && ::waitpid(process_, nullptr, WNOHANG) == 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

bool Command::update() {
  if (has_ended()) return true;
  const bool ended = has_ended_now();
  read_output();
  read_errors();
  if (!ended) {
    if (std::chrono::steady_clock::now() < kill_time_) return false;
    kill_time_ = TimePoint::max();
    kill(SIGKILL);
    return false;
  }
  kill_time_ = TimePoint::max();
  end_.reset();
  output_pipe_.reset();
  errors_pipe_.reset();
  return true;
}

bool Command::has_ended_now() {
  int status = 0;
  if (is_child_) {
    const ::pid_t ended = ::waitpid(process_, &status, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR)) return false;
    if (ended != process_) status = 0;  // the program has its children reaped by the kernel
  } else {
    ::pollfd end{.fd = end_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&end, 1, 0) <= 0) return false;
  }
  status_ = status;
  return true;
}

void Command::kill(int signal) const {
  if (!has_ended()) ::kill(-process_, signal);
}

std::vector<int> Command::fds() const {
  std::vector<int> fds;
  for (const base::FileDescriptor* fd : {&end_, &output_pipe_, &errors_pipe_}) {
    if (*fd) fds.push_back(fd->get());
  }
  return fds;
}

std::string Command::end() const {
  if (!status_) return "";
  if (!is_child_) return "an end that nobody saw";
  if (WIFSIGNALED(*status_)) return fmt::format("signal {}", WTERMSIG(*status_));
  return fmt::format("exit code {}", WEXITSTATUS(*status_));
}

std::string Command::end_of(std::string_view name, std::string_view said) const {
  return fmt::format("{} ended with {}{}{}", name, end(), said.empty() ? "" : ": ", said);
}

void Command::read_output() {
  const std::string read = read_pipe(output_pipe_, kMostAtATime);
  const std::size_t kept = std::min(read.size(), most_output_ - output_.size());
  is_output_cut_ = is_output_cut_ || kept < read.size();
  output_.append(read, 0, kept);
}

void Command::read_errors() {
  errors_ += read_pipe(errors_pipe_, kMostAtATime);
  if (errors_.size() > kMostErrors) errors_.erase(0, errors_.size() - kMostErrors);
}

}  // namespace cadre::engine::cluster
