// Owning a file descriptor.
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

// open(2) with O_CLOEXEC. Throws StorageError "cannot <doing> <path>: <reason>".
FileDescriptor open_file(const std::filesystem::path& path, int flags, std::string_view doing);
// The same for writing a file of Cadre's own, in a directory where somebody else may have put something under its name:
// a link is not followed, and what is no regular file is refused.
FileDescriptor open_own_file(const std::filesystem::path& path, int flags);
// After writing: some file systems say only here that there was no space. Throws OutOfSpace or StorageError.
void close_written(FileDescriptor& file, const std::filesystem::path& path);

}  // namespace cadre::base
