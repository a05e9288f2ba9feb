// Blocks in memory that another process of this machine maps: written once, read without a copy.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/file_descriptor.h"
#include "base/memory_map.h"
#include "cadre/value.h"
#include "data/ipc.h"
#include "data/plan.h"

namespace cadre::data {

// An unnamed file in memory. It is freed when this object and all mappings are gone, even if processes crash.
class SharedBlocks {
 public:
  // Throws StorageError if the system does not provide the memory.
  explicit SharedBlocks(std::span<const Block> blocks);

  // Returns the argument of map_shared(), in any process of this user on this machine, as long as this object exists.
  Value ticket() const;

 private:
  base::FileDescriptor memory_;
  std::int64_t bytes_ = 0;
};

// Maps the blocks into this process. The mapping stays valid after the writer has ended. Returns nullptr if there are
// no blocks. Throws StorageError if the writer has already freed them.
std::shared_ptr<const base::MemoryMap> map_shared(const Value& ticket);
// Returns views of mapped blocks, which keep the mapping.
ReadBlocks read_shared(std::shared_ptr<const base::MemoryMap> memory);

}  // namespace cadre::data
