// Memory of the machine and of the program's processes, from /proc: approximate, and cheap enough to be read once a
// second.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace cadre::run {

struct MemoryUsage {
  std::uint64_t used_bytes = 0;   // of the machine: what cannot be had without swapping
  std::uint64_t total_bytes = 0;  // of the machine
  // What this process and all its descendants have resident beyond files that they share. What a forked process has not
  // written since counts for it too.
  std::uint64_t own_bytes = 0;
};

// Empty where /proc does not say.
std::optional<MemoryUsage> memory_usage();

// `own_bytes` of another process and its descendants; 0 for one that is gone.
std::uint64_t resident_bytes_of_tree(pid_t process);

// The part of the machine's memory that can be had without swapping, 0 to 1; 1 where /proc does not say.
double free_memory();

}  // namespace cadre::run
