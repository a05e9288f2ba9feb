// The limit of what workers write to stdout and stderr: one that writes without end must not fill the disk.
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

// A file that has grown beyond the first loses its oldest part: a line that says so is left, and the newest lines of
// the second.
inline constexpr std::uint64_t max_output_bytes = std::uint64_t{64} << 20;
inline constexpr std::uint64_t kept_output_bytes = std::uint64_t{4} << 20;

// The length of that line, and how many bytes of output it says were dropped: empty where the beginning of a file is
// not such a line.
inline constexpr std::size_t output_header_bytes = 80;
std::optional<std::uint64_t> dropped_output(std::string_view begin_of_file);

// Cuts the file when it has grown beyond the limit. Its writers may go on (with O_APPEND); what they write at that
// moment may be lost in part. Does nothing to what is no regular file. Best effort: a file that cannot be cut stays.
void limit_output(const std::filesystem::path& file);

// Does so to the files of running workers, some times a second, in a thread of its own: copying takes milliseconds. By
// their paths, because thousands of workers' files would be too many descriptors.
class OutputLimit {
 public:
  OutputLimit() : thread_([this] { run(); }) {}
  // Looks at all files a last time.
  ~OutputLimit();

  // The files stdout and stderr in the directory, which come to be soon, until the worker ends.
  void watch(std::uint64_t worker, std::filesystem::path directory);
  // Looks at its files a last time, later.
  void worker_ended(std::uint64_t worker);

 private:
  void run();
  std::vector<std::filesystem::path> take_directories();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::uint64_t, std::filesystem::path> running_;
  std::vector<std::filesystem::path> ended_;  // since the last look
  bool quit_ = false;
  std::thread thread_;
};

}  // namespace cadre::engine::local
