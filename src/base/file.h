// Files and directories: the one place that calls the operating system for them. All errors are StorageError with the
// path and the system's reason.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checksum.h"

namespace cadre::base {

// Owns a file descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

// "No space left on device" and the like for the present errno.
std::string last_system_error();
// Throws StorageError "cannot <doing> <path>: <reason>" for the present errno; OutOfSpace where that says so.
[[noreturn]] void throw_storage_error(std::string_view doing, const std::filesystem::path& path);

std::string read_file(const std::filesystem::path& path);
void write_all(int fd, std::string_view bytes, const std::filesystem::path& path);
// Writes a whole file in place, where nobody reads it yet.
void write_file(const std::filesystem::path& path, std::string_view bytes);
// Writes a whole file so that a reader sees the old or the new one, never a part: a temporary file and a rename.
void replace_file(const std::filesystem::path& path, std::string_view bytes);

// A file that only grows. Opened when something is first written; one write call for each append. After a StorageError
// the file ends where it ended before.
class AppendFile {
 public:
  // What was written: bytes, and their checksum.
  struct Stamp {
    std::int64_t size = 0;
    std::uint64_t checksum = 0;

    bool operator==(const Stamp&) const = default;
    static void fields(auto& archive, auto& stamp) {
      archive("size", stamp.size);
      archive("checksum", stamp.checksum);
    }
  };

  // The file is empty, or not there.
  explicit AppendFile(std::filesystem::path path) : path_(std::move(path)) {}
  // Goes on with an existing file, if its first `stamp.size` bytes are what the stamp says; what follows is cut off.
  // False, and nothing is changed, if not.
  bool resume(const Stamp& stamp);
  // Goes on with an existing file as it is.
  void resume();

  void append(std::string_view bytes);
  // Puts `bytes` in the place of the whole file, in one step, also of one that was there before this object.
  void replace(std::string_view bytes);

  Stamp stamp() const { return {size_, checksum_.value()}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  FileDescriptor fd_;
  std::int64_t size_ = 0;
  Checksum checksum_;
};

// Waits until the names in a directory are on the disk.
void sync_directory(const std::filesystem::path& path);
// Makes one directory; false when it exists. Parents must exist.
bool make_directory(const std::filesystem::path& path);
void make_directories(const std::filesystem::path& path);
void rename(const std::filesystem::path& from, const std::filesystem::path& to);
// The same; false, and nothing is done, when there is no `from`, or no directory for `to`.
bool rename_if_there(const std::filesystem::path& from, const std::filesystem::path& to);
// Removes a file, or a directory with its content; nothing happens where there is none. Never follows symbolic links.
void remove_tree(const std::filesystem::path& path);
// Copies regular files and directories below `from` into `to`, which is made if needed; shares blocks where the file
// system can. Refuses anything that is neither.
void copy_tree(const std::filesystem::path& from, const std::filesystem::path& to);
// Names in a directory, sorted.
std::vector<std::string> list_directory(const std::filesystem::path& path);

}  // namespace cadre::base
