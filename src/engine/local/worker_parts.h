// Descriptors and limits that a worker starts with.
#pragma once

#include <cstdint>
#include <optional>

#include "base/file_descriptor.h"

namespace cadre::engine::local {

struct WorkerParts {
  base::FileDescriptor connection;                 // the worker's end, to its controller
  std::optional<std::uint64_t> memory_bytes = {};  // memory limit, already in force; empty: none
  base::FileDescriptor fork_server = {};           // for its own ForkServerConnection; may be empty
};

}  // namespace cadre::engine::local
