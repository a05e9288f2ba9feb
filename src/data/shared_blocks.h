// Blocks in memory that another process of this machine maps: written once, read where they lie.
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

// A file without a name that lies in memory. It is gone with this object and with those who map it, however they end.
class SharedBlocks {
 public:
  // Throws StorageError where the system does not give the memory.
  explicit SharedBlocks(std::span<const Block> blocks);

  // Returns the argument of map_shared(), in any process of this user on this machine, as long as this object exists.
  Value ticket() const;

 private:
  base::FileDescriptor memory_;
  std::int64_t bytes_ = 0;
};

// Their memory in this process: it stays, whatever becomes of who has written it. nullptr: there are no blocks. Throws
// StorageError where they are gone.
std::shared_ptr<const base::MemoryMap> map_shared(const Value& ticket);
// Views of what map_shared() has mapped, good for ever.
ReadBlocks read_shared(std::shared_ptr<const base::MemoryMap> memory);

}  // namespace cadre::data
