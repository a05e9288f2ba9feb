// What a worker is born with.
#pragma once

#include <cstdint>
#include <optional>

#include "base/file_descriptor.h"

namespace cadre::engine::local {

struct WorkerParts {
  base::FileDescriptor connection;                 // its end, to its controller
  std::optional<std::uint64_t> memory_bytes = {};  // the limit of its memory, which is in force
  base::FileDescriptor fork_server = {};           // for a ForkServerConnection of its own, where it may start workers
};

}  // namespace cadre::engine::local
