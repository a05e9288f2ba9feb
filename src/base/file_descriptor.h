// Owner of a file descriptor, and functions that open and close files.
#pragma once

#include <filesystem>
#include <string_view>
#include <utility>

namespace cadre::base {

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

// Calls open(2) with O_CLOEXEC. Throws StorageError "cannot <doing> <path>: <reason>".
FileDescriptor open_file(const std::filesystem::path& path, int flags, std::string_view doing);
// Does the same to write one of Cadre's own files in a directory where another user may have placed something under
// that name. Throws StorageError if it is a link or not a regular file.
FileDescriptor open_own_file(const std::filesystem::path& path, int flags);
// Closes a file after writing: some file systems report only here that the disk is full. Throws OutOfSpace or
// StorageError.
void close_written(FileDescriptor& file, const std::filesystem::path& path);

}  // namespace cadre::base
