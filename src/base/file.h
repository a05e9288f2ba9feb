// Reads, writes and renames files. All errors are StorageError with the path and the system's reason, OutOfSpace if
// the disk is full.
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
// Writes a whole file in place, for files that have no readers yet.
void write_file(const std::filesystem::path& path, std::string_view bytes);
// Waits until the content of a file is on the disk, but not its name (see sync_directory).
void sync_file(const std::filesystem::path& path);
// Replaces a whole file atomically with a temporary file and a rename: readers get the old or the new content, never
// a part.
void replace_file(const std::filesystem::path& path, std::string_view bytes);
// Does the same; only this user may read and write the file.
void replace_private_file(const std::filesystem::path& path, std::string_view bytes);
// Does the same as replace_file() and waits for the disk, so that the file survives a loss of power.
void replace_file_durably(const std::filesystem::path& path, std::string_view bytes);

// A regular file with reads at any offset.
class ReadableFile {
 public:
  enum class Links { follow, refuse };

  // Opens a file; returns nothing if it does not exist. Throws StorageError, also if it is not a regular file.
  static std::optional<ReadableFile> open(const std::filesystem::path& path, Links links);

  std::uint64_t size() const;  // bytes
  // Reads from `offset` into `bytes` and returns the number of bytes read: fewer than requested only at the end of
  // the file.
  std::size_t read(std::uint64_t offset, std::span<std::byte> bytes) const;
  void sync() const;  // waits for the disk
  const std::filesystem::path& path() const { return path_; }

 private:
  ReadableFile(std::filesystem::path path, FileDescriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::filesystem::path path_;
  FileDescriptor fd_;
};

// An append-only file. It is opened at the first write; each append is one write call. After a StorageError the file
// has its previous length.
class AppendFile {
 public:
  // The bytes written so far and their checksum.
  struct Stamp {
    std::int64_t size = 0;
    std::uint64_t checksum = 0;

    bool operator==(const Stamp&) const = default;
  };

  // The file must be empty or missing.
  explicit AppendFile(std::filesystem::path path) : path_(std::move(path)) {}
  // Continues an existing file if its first `stamp.size` bytes match the stamp, and cuts off the rest. Otherwise
  // returns false and changes nothing.
  bool resume(const Stamp& stamp);
  // Continues an existing file as it is.
  void resume();

  void append(std::string_view bytes);
  // Replaces the whole file with `bytes` atomically, even if the file existed before this object.
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
