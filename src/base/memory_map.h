// A file mapped into the memory of this process.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace cadre::base {

// A private mapping of a whole file: pages are read on first access and shared with all processes that map the file;
// a page that is written to becomes a private copy.
class MemoryMap {
 public:
  // Maps the first `size` bytes; the file must not become shorter while they are used. `path` is for messages. Throws
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
