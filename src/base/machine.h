// Identifies this machine and its current boot.
#pragma once

#include <string>

namespace cadre::base {

// Returns the host name; "localhost" if the system call fails.
std::string host_name();

// Returns the kernel's boot id, which changes with every boot. Files written in an earlier boot may be incomplete
// after a loss of power; files of the same boot are not. Empty if the kernel has no boot id. Throws StorageError if
// it cannot be read, for example without free descriptors. The environment variable CADRE_BOOT_ID replaces it in
// tests.
std::string boot_id();

}  // namespace cadre::base
