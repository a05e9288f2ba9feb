// The plain operations that Cadre is compared with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "process.h"

namespace cadre::bench {

// Forks `count` processes that run `body` with their number and end, `at_a_time` of them at a time, and waits for all.
// Throws Error when one does not end by itself.
void fork_processes(std::int64_t count, std::int64_t at_a_time, const std::function<void(std::int64_t)>& body);

struct PlainRun {
  double wall_s = 0;
  Usage usage;
};
// Times `work` in a process of its own.
PlainRun run_plainly(const std::function<void()>& work);

// Executes this program, to nothing but a fork: seconds from the start of the process until the child was waited for.
double start_plain_program();

// Bytes that no file system can compress or share.
std::string random_bytes(std::int64_t count);

// Writes a new file, as somebody writes a checkpoint.
void write_file(const std::filesystem::path& path, const std::string& bytes);

// Checkpoints without Cadre: a file is written, and renamed to the place of the oldest of `keep` files.
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
