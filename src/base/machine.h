// Which machine this is, and which start of it.
#pragma once

#include <string>

namespace cadre::base {

// "localhost" where the system does not say.
std::string host_name();

// The kernel's name for the time since the machine was started; another one after every start. What was written before
// a loss of power may be missing in part, what was written in the same boot may not. Empty where the kernel has none.
// Throws StorageError where it cannot be read, because descriptors have run out for one. Tests put CADRE_BOOT_ID of the
// environment in its place.
std::string boot_id();

}  // namespace cadre::base
