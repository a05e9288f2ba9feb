// The plain operations that Cadre is compared with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "process.h"

namespace cadre::bench {

// Forks `count` processes, `at_a_time` of them at a time, and waits for all. Each runs `body` with its number and
// exits. Throws Error if one does not exit by itself.
void fork_processes(std::int64_t count, std::int64_t at_a_time, const std::function<void(std::int64_t)>& body);
// Does the same with a program that is looked for in PATH, by posix_spawn().
void spawn_processes(std::int64_t count, std::int64_t at_a_time, const std::string& program);

struct PlainRun {
  double wall_s = 0;
  Usage usage;
};
// Times `work` in a process of its own.
PlainRun run_plainly(const std::function<void()>& work);

// Executes this program, which only forks once. Returns the seconds from the start of the process until the child was
// waited for.
double start_plain_program();

// Returns bytes that no file system can compress or deduplicate.
std::string random_bytes(std::int64_t count);

// Writes a new file, like a user's checkpoint.
void write_file(const std::filesystem::path& path, const std::string& bytes);

// Checkpoints without Cadre: a file is written, and renamed over the oldest of `keep` files.
class PlainCheckpoints {
 public:
  PlainCheckpoints(std::filesystem::path directory, std::int64_t keep);
  void write(const std::string& bytes);

 private:
  std::filesystem::path directory_;
  std::int64_t keep_;
  std::int64_t written_ = 0;
};

}  // namespace cadre::bench
