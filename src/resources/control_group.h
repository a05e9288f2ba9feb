// Limits that the control groups of a process set (cgroup v2), as those of a container, a batch job or a service.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace cadre::resources {

struct GroupMemory {
  std::uint64_t limit_bytes = 0;
  std::uint64_t used_bytes = 0;  // by all processes of the group, without files in memory that were not used lately
};

struct GroupLimits {
  std::optional<double> cpus = {};         // CPU time per time; empty: not limited
  std::optional<GroupMemory> memory = {};  // of the group with the lowest limit; empty: not limited
};

// Returns the limits of this process: the lowest of its group and all groups above it that are seen here, which in a
// container are those from its own on. `groups`: the file in which the kernel lists the groups of the process; `root`:
// the folder of all groups. Groups of version 1 are ignored.
GroupLimits group_limits(const std::filesystem::path& groups = "/proc/self/cgroup",
                         const std::filesystem::path& root = "/sys/fs/cgroup");

}  // namespace cadre::resources
