#include "process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/json.h"
#include "base/system_error.h"
#include "cadre/error.h"
#include "engine/local/process_stat.h"
#include "parts.h"

namespace cadre::bench {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// Returns the bytes written by this process and by the children that it has waited for.
std::int64_t written_bytes() {
  const std::string io = base::read_file("/proc/self/io");
  const std::size_t found = io.find("wchar: ");
  if (found == io.npos) throw Error("/proc/self/io does not say how much was written: is task I/O accounting off?");
  return std::strtoll(io.c_str() + found + std::strlen("wchar: "), nullptr, 10);
}

struct Pipe {
  base::FileDescriptor read;
  base::FileDescriptor write;
};

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error("cannot make a pipe: " + base::last_system_error());
  return {base::FileDescriptor(ends[0]), base::FileDescriptor(ends[1])};
}

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

[[noreturn]] void work_and_end(const std::function<Dict()>& work, const Pipe& pipe, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  try {
    base::write_all(pipe.write.get(), base::to_json(work()), "pipe");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cadre_bench: %s\n", error.what());
    ::_exit(1);
  }
  ::_exit(0);  // as workers end, so that the destructors of libraries are not measured
}

}  // namespace

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Process Process::fork(const std::function<Dict()>& work) {
  adopt_orphans();
  Pipe pipe = make_pipe();
  std::fflush(nullptr);  // or the child would write it again
  const std::int64_t written = written_bytes();
  const pid_t parent = ::getpid();
  const Stopwatch stopwatch;
  const pid_t child = ::fork();
  if (child < 0) throw Error("cannot fork: " + base::last_system_error());
  if (child == 0) work_and_end(work, pipe, parent);
  return {child, std::move(pipe.read), written, stopwatch};
}

Process Process::execute(const std::string& part, const std::vector<std::string>& arguments) {
  adopt_orphans();
  Pipe pipe = make_pipe();
  std::vector<std::string> words{"cadre_bench", kPartOption, part};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, pipe.write.get(), STDOUT_FILENO);
  const std::int64_t written = written_bytes();
  const Stopwatch stopwatch;
  pid_t child = -1;
  const int error = ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, pointers.data(), ::environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw Error(std::string("cannot execute this program anew: ") + std::strerror(error));
  return {child, std::move(pipe.read), written, stopwatch};
}

Process::Process(pid_t id, base::FileDescriptor output, std::int64_t written_before, Stopwatch stopwatch)
    : id_(id), output_(std::move(output)), written_before_(written_before), stopwatch_(stopwatch) {}

Process::~Process() {
  if (waited_) return;
  ::kill(id_, SIGKILL);
  while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
  }
}

void Process::kill() { ::kill(id_, SIGKILL); }

Process::Ended Process::wait(End expected) {
  const std::string said = read_all(output_.get());
  waited_ = true;
  Ended ended;
  int result = 0;
  for (;;) {
    int status = 0;
    rusage usage{};
    const pid_t process = ::wait4(-1, &status, 0, &usage);
    if (process < 0 && errno == EINTR) continue;
    if (process < 0) break;
    if (process == id_) result = status;
    ended.usage.cpu_s += seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  }
  ended.seconds = stopwatch_.seconds();
  ended.usage.written_bytes = written_bytes() - written_before_;
  const bool was_killed = WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL;
  if (expected == End::killed && was_killed) return ended;
  if (expected == End::killed || !WIFEXITED(result) || WEXITSTATUS(result) != 0)
    throw Error("a part of the benchmark has failed");
  ended.said = base::parse_json(said, "what a part of the benchmark said").dict();
  return ended;
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t process = std::atoi(entry.path().filename().c_str());
    if (process <= 0) continue;
    const auto stat = engine::local::read_process_stat(entry.path());
    if (stat && stat->parent == parent && !stat->exiting) children.push_back(process);
  }
  return children;
}

}  // namespace cadre::bench
