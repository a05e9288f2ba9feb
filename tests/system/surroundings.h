// What a scenario's process changes of its surroundings before cadre::init, seen by it and its children only.
#pragma once

#include <sys/types.h>

namespace cadre::system_tests {

// All of them end the process with a line "cannot: <reason>" where this machine does not allow it.

// A file of ours in the place of the kernel's counter of oom kills.
void take_own_oom_counter();
// A disk in the place of the directory for temporary files, with space for a hundred files.
void take_own_small_disk();
// A cgroup with 256 MiB of memory.
void take_small_cgroup();
// When the process that took it is gone, with all below it.
void remove_small_cgroup(pid_t process);

}  // namespace cadre::system_tests
