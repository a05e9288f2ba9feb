#include "base/memory_map.h"

#include <sys/mman.h>

#include "base/system_error.h"

namespace cadre::base {

MemoryMap::MemoryMap(int fd, std::size_t size, const std::filesystem::path& path) {
  if (size == 0) return;  // an empty file cannot be mapped
  // MAP_NORESERVE: few pages are written to, and there may be many workers.
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
  if (memory == MAP_FAILED) throw_storage_error("map", path);
  bytes_ = {static_cast<std::byte*>(memory), size};
}

MemoryMap::~MemoryMap() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace cadre::base
