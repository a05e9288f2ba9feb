// What processes have in memory.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace cadre::bench {

// In bytes, of one process.
struct MemoryUse {
  std::int64_t resident = 0;   // all that is in memory, shared or not
  std::int64_t private_ = 0;   // what would be free without the process
  std::int64_t anonymous = 0;  // not backed by a file, its share of what is shared: adds up over processes
};

// Of a running process (/proc/<process>/smaps_rollup). Throws Error when it cannot be read.
MemoryUse memory_of(pid_t process);

inline double megabytes(std::int64_t bytes) { return static_cast<double>(bytes) / 1e6; }

}  // namespace cadre::bench
