// Memory use of processes.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace cadre::bench {

// Memory use of one process, in bytes.
struct MemoryUse {
  std::int64_t resident = 0;   // all memory, shared or not
  std::int64_t private_ = 0;   // memory that would be freed if the process ended
  std::int64_t anonymous = 0;  // its share of memory not backed by a file: adds up over processes
};

// Returns the memory use of a running process (/proc/<process>/smaps_rollup). Throws Error if it cannot be read.
MemoryUse memory_of(pid_t process);

inline double megabytes(std::int64_t bytes) { return static_cast<double>(bytes) / 1e6; }

}  // namespace cadre::bench
