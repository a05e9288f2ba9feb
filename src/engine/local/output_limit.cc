#include "engine/local/output_limit.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/file_descriptor.h"

namespace cadre::engine::local {
namespace {

constexpr std::chrono::milliseconds interval{250};
constexpr int most_rounds = 4;

// The first line of a cut file. Its length is fixed, so that the number can be written last.
constexpr const char* header_format = "[cadre: %llu bytes of older output were dropped here]";

std::string header(std::uint64_t dropped) {
  char text[output_header_bytes];
  std::snprintf(text, sizeof text, header_format, static_cast<unsigned long long>(dropped));
  return fmt::format("{:<{}}\n", text, output_header_bytes - 1);
}

std::string read_at(int fd, std::uint64_t offset, std::size_t bytes) {
  std::string text(bytes, '\0');
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(fd, text.data() + done, bytes - done, static_cast<off_t>(offset + done));
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  text.resize(done);
  return text;
}

bool write_at(int fd, std::uint64_t offset, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::pwrite(fd, text.data(), text.size(), static_cast<off_t>(offset));
    if (put <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
  return true;
}

bool is_too_large(const struct stat& file) {
  return S_ISREG(file.st_mode) && static_cast<std::uint64_t>(file.st_size) > max_output_bytes;
}

// Returns the bytes dropped earlier, without the header line itself.
std::uint64_t dropped_bytes(int fd) {
  const std::optional<std::uint64_t> dropped = dropped_output(read_at(fd, 0, output_header_bytes));
  return dropped ? *dropped - output_header_bytes : 0;
}

// Copies the newest part over the oldest part of the same file, because the writers have this file open.
void cut(int fd, std::uint64_t size) {
  const std::uint64_t dropped_before = dropped_bytes(fd);
  std::string newest = read_at(fd, size - kept_output_bytes, kept_output_bytes);
  newest.erase(0, newest.find('\n') + 1);
  std::uint64_t left = output_header_bytes;
  bool written = true;
  // Repeat for output appended meanwhile: a writer's last lines matter most. A writer that never pauses loses some.
  for (int round = 0; round < most_rounds && written && !newest.empty(); ++round) {
    written = write_at(fd, left, newest);
    left += newest.size();
    newest = read_at(fd, size, kept_output_bytes);
    size += newest.size();
  }
  struct stat file{};
  written =
      written && ::fstat(fd, &file) == 0 &&
      write_at(fd, 0, header(dropped_before + static_cast<std::uint64_t>(file.st_size) + output_header_bytes - left));
  // If even this needs space, the disk is full because of this file: empty it.
  if (::ftruncate(fd, written ? static_cast<off_t>(left) : 0) != 0) return;
}

}  // namespace

std::optional<std::uint64_t> dropped_output(std::string_view begin_of_file) {
  if (begin_of_file.size() < output_header_bytes || begin_of_file[output_header_bytes - 1] != '\n') return std::nullopt;
  unsigned long long dropped = 0;
  const std::string line(begin_of_file.substr(0, output_header_bytes));
  if (std::sscanf(line.c_str(), header_format, &dropped) != 1) return std::nullopt;
  return dropped;
}

void limit_output(const std::filesystem::path& path) {
  struct stat file{};
  if (::lstat(path.c_str(), &file) != 0 || !is_too_large(file)) return;
  const base::FileDescriptor fd(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (fd && ::fstat(fd.get(), &file) == 0 && is_too_large(file)) {
    cut(fd.get(), static_cast<std::uint64_t>(file.st_size));
  }
}

OutputLimit::~OutputLimit() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void OutputLimit::watch(std::uint64_t worker, std::filesystem::path directory) {
  {
    const std::lock_guard lock(mutex_);
    running_[worker] = std::move(directory);
  }
  wake_.notify_one();
}

void OutputLimit::worker_ended(std::uint64_t worker) {
  {
    const std::lock_guard lock(mutex_);
    if (auto entry = running_.extract(worker)) ended_.push_back(std::move(entry.mapped()));
  }
  wake_.notify_one();
}

void OutputLimit::run() {
  std::unique_lock lock(mutex_);
  for (bool last = false; !last;) {
    wake_.wait(lock, [this] { return quit_ || !running_.empty() || !ended_.empty(); });
    wake_.wait_for(lock, interval, [this] { return quit_; });
    last = quit_;
    const std::vector<std::filesystem::path> directories = take_directories();
    lock.unlock();
    for (const auto& directory : directories) {
      for (const char* name : {"stdout", "stderr"}) limit_output(directory / name);
    }
    lock.lock();
  }
}

std::vector<std::filesystem::path> OutputLimit::take_directories() {
  std::vector<std::filesystem::path> directories = std::exchange(ended_, {});
  for (const auto& [worker, directory] : running_) directories.push_back(directory);
  return directories;
}

}  // namespace cadre::engine::local
