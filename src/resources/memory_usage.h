// Memory of the machine and of the program's processes, from /proc: approximate, and cheap enough to be read once a
// second.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace cadre::resources {

// The machine is the container, or another control group, where that may use less memory.
struct MemoryUsage {
  std::uint64_t used_bytes = 0;   // machine: memory that is not available without swapping
  std::uint64_t total_bytes = 0;  // machine
  // Resident memory of this process and all its descendants, without pages of files and explicitly shared memory. Pages
  // that a forked process still shares with its parent count for both.
  std::uint64_t own_bytes = 0;
};

// Returns the present usage; empty if /proc does not show it.
std::optional<MemoryUsage> memory_usage();

// Returns `own_bytes` of another process and its descendants; 0 if it is gone.
std::uint64_t resident_bytes_of_tree(pid_t process);

// Returns the part of the machine's memory that is available without swapping, 0 to 1; 1 if /proc does not show it.
double free_memory();

}  // namespace cadre::resources
