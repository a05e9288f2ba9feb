// Changes that a scenario's process makes to its environment before cadre::init; only it and its children see them.
#pragma once

#include <sys/types.h>

namespace cadre::system_tests {

// Each function ends the process with a line "cannot: <reason>" if this machine does not allow it.

// Mounts a file of the test over the kernel's counter of oom kills.
void take_own_oom_counter();
// Mounts a file system with space for a hundred files over the directory for temporary files.
void take_own_small_disk();
// Enters a new cgroup with 256 MiB of memory.
void take_small_cgroup();
// Removes the cgroup that `process` entered, after it and its children have exited.
void remove_small_cgroup(pid_t process);

}  // namespace cadre::system_tests
