// Files: what calls the operating system for them. All errors are StorageError with the path and the system's reason,
// OutOfSpace where the disk is full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/checksum.h"
#include "base/file_descriptor.h"

namespace cadre::base {

std::string read_file(const std::filesystem::path& path);
void write_all(int fd, std::string_view bytes, const std::filesystem::path& path);
// Writes a whole file in place, where nobody reads it yet.
void write_file(const std::filesystem::path& path, std::string_view bytes);
// Waits until the content of a file is on the disk; its name is another matter (sync_directory).
void sync_file(const std::filesystem::path& path);
// Writes a whole file so that a reader sees the old or the new one, never a part: a temporary file and a rename.
void replace_file(const std::filesystem::path& path, std::string_view bytes);
// Does the same so that it survives a loss of power. Waits for the disk.
void replace_file_durably(const std::filesystem::path& path, std::string_view bytes);

// A regular file that is read at any place.
class ReadableFile {
 public:
  enum class Links { follow, refuse };

  // Empty where there is no such file. Throws StorageError also for what is no regular file.
  static std::optional<ReadableFile> open(const std::filesystem::path& path, Links links);

  std::uint64_t size() const;  // bytes
  // Fills `bytes` with what lies at `offset`, and says how many there were: fewer only at the end of the file.
  std::size_t read(std::uint64_t offset, std::span<std::byte> bytes) const;
  void sync() const;  // waits for the disk
  const std::filesystem::path& path() const { return path_; }

 private:
  ReadableFile(std::filesystem::path path, FileDescriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::filesystem::path path_;
  FileDescriptor fd_;
};

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

void rename(const std::filesystem::path& from, const std::filesystem::path& to);
}  // namespace cadre::base
