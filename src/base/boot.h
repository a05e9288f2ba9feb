// Which start of the machine this is.
#pragma once

#include <string>

namespace cadre::base {

// The kernel's name for the time since the machine was started; another one after every start. What was written before
// a loss of power may be missing in part, what was written in the same boot may not. Empty where the kernel has none.
std::string boot_id();

}  // namespace cadre::base
