// A file as memory of this process.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace cadre::base {

// A private mapping of a whole file: its pages are read when they are touched, and shared with everybody who maps the
// same file; one that is written to becomes a copy of this process.
class MemoryMap {
 public:
  // The first `size` bytes, which the file must have as long as they are used. `path` is for messages. Throws
  // StorageError.
  MemoryMap(int fd, std::size_t size, const std::filesystem::path& path);
  ~MemoryMap();
  MemoryMap(const MemoryMap&) = delete;
  MemoryMap& operator=(const MemoryMap&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace cadre::base
