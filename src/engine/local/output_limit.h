// Limit of the stdout and stderr files: a worker that writes without end must not fill the disk.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace cadre::engine::local {

// A file larger than `max_output_bytes` is cut to a header line and its newest lines, up to `kept_output_bytes`.
inline constexpr std::uint64_t max_output_bytes = std::uint64_t{64} << 20;
inline constexpr std::uint64_t kept_output_bytes = std::uint64_t{4} << 20;

// The length of that header line, and a function that returns the number of dropped bytes of output in it; empty if
// the file does not begin with such a line.
inline constexpr std::size_t output_header_bytes = 80;
std::optional<std::uint64_t> dropped_output(std::string_view begin_of_file);

// Cuts a file that is larger than the limit. Its writers may continue (with O_APPEND); output written at that moment
// may be lost in part. Does nothing if it is not a regular file. Best effort: ignores errors.
void limit_output(const std::filesystem::path& file);

// A thread that limits the files of running workers several times a second, because copying takes milliseconds. It
// stores paths, because descriptors for thousands of workers would be too many.
class OutputLimit {
 public:
  OutputLimit() : thread_([this] { run(); }) {}
  // Checks all files a last time and ends the thread.
  ~OutputLimit();

  // Watches the files stdout and stderr in the directory, which may not exist yet, until the worker ends.
  void watch(std::uint64_t worker, std::filesystem::path directory);
  // Schedules a last check of the worker's files.
  void worker_ended(std::uint64_t worker);

 private:
  void run();
  std::vector<std::filesystem::path> take_directories();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::uint64_t, std::filesystem::path> running_;
  std::vector<std::filesystem::path> ended_;  // directories of workers that ended since the last check
  bool quit_ = false;
  std::thread thread_;
};

}  // namespace cadre::engine::local
