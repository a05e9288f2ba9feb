// Blocks in memory that another process of this machine maps: written once, read where they lie.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/file_descriptor.h"
#include "cadre/value.h"
#include "data/ipc.h"
#include "data/plan.h"

namespace cadre::data {

// A file without a name that lies in memory. It is gone with this object and with those who map it, however they end.
class SharedBlocks {
 public:
  // Throws StorageError where the system does not give the memory.
  explicit SharedBlocks(std::span<const Block> blocks);

  // What open_shared() takes, in any process of this user on this machine, as long as this object exists.
  Value ticket() const;

 private:
  base::FileDescriptor memory_;
  std::int64_t bytes_ = 0;
};

// Views of them, good for ever. Throws StorageError where they are gone.
ReadBlocks open_shared(const Value& ticket);

}  // namespace cadre::data
