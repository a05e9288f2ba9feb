#include "plain.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <random>

#include "base/directory.h"
#include "base/file.h"
#include "base/system_error.h"
#include "cadre/error.h"
#include "parts.h"

namespace cadre::bench {
namespace {

namespace fs = std::filesystem;

void wait_for_one() {
  int status = 0;
  if (::waitpid(-1, &status, 0) < 0) throw Error("cannot wait for a process: " + base::last_system_error());
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw Error("a plain process has failed");
}

void fork_one(std::int64_t number, const std::function<void(std::int64_t)>& body) {
  const pid_t child = ::fork();
  if (child < 0) throw Error("cannot fork: " + base::last_system_error());
  if (child > 0) return;
  try {
    body(number);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cadre_bench: %s\n", error.what());
    ::_exit(1);
  }
  ::_exit(0);
}

void spawn_one(const std::string& program) {
  std::string name = program;
  char* const words[] = {name.data(), nullptr};
  pid_t child = 0;
  if (const int fault = ::posix_spawnp(&child, name.c_str(), nullptr, nullptr, words, environ); fault != 0)
    throw Error("cannot start " + program + ": " + std::strerror(fault));
}

// Calls `start` for each of `count` processes, `at_a_time` of which are there at a time.
void run_processes(std::int64_t count, std::int64_t at_a_time, const std::function<void(std::int64_t)>& start) {
  std::int64_t running = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (running == at_a_time) {
      wait_for_one();
      --running;
    }
    start(i);
    ++running;
  }
  while (running-- > 0) wait_for_one();
}

}  // namespace

void fork_processes(std::int64_t count, std::int64_t at_a_time, const std::function<void(std::int64_t)>& body) {
  run_processes(count, at_a_time, [&body](std::int64_t number) { fork_one(number, body); });
}

void spawn_processes(std::int64_t count, std::int64_t at_a_time, const std::string& program) {
  run_processes(count, at_a_time, [&program](std::int64_t) { spawn_one(program); });
}

PlainRun run_plainly(const std::function<void()>& work) {
  Process process = Process::fork([&] {
    const Stopwatch stopwatch;
    work();
    return Dict{{"wall_s", stopwatch.seconds()}};
  });
  const Process::Ended ended = process.wait();
  return {Config(ended.said).get<double>("wall_s"), ended.usage};
}

double start_plain_program() {
  const double began = now_seconds();
  return Config(Process::execute("start-and-fork", {}).wait().said).get<double>("ended_at") - began;
}

Dict start_and_fork(const Arguments&) {
  fork_processes(1, 1, [](std::int64_t) {});
  return {{"ended_at", now_seconds()}};
}

std::string random_bytes(std::int64_t count) {
  std::string bytes(static_cast<std::size_t>(count), '\0');
  std::mt19937_64 random;
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + i, &word, std::min(sizeof word, bytes.size() - i));
  }
  return bytes;
}

void write_file(const fs::path& path, const std::string& bytes) {
  const base::FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file) base::throw_storage_error("create", path);
  base::write_all(file.get(), bytes, path);
}

PlainCheckpoints::PlainCheckpoints(fs::path directory, std::int64_t keep)
    : directory_(std::move(directory)), keep_(keep) {
  base::make_directories(directory_);
}

void PlainCheckpoints::write(const std::string& bytes) {
  const fs::path unfinished = directory_ / "unfinished";
  write_file(unfinished, bytes);
  base::rename(unfinished, directory_ / ("checkpoint_" + std::to_string(written_++ % keep_)));
}

}  // namespace cadre::bench
