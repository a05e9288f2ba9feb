// Runs a trial's program in its worker: starts it, passes its reports on, and ends it.
#pragma once

#include <string>

namespace cadre::tune {

// Returns the entry of a worker (worker/entries.h) whose trainable is a Program.
std::string program_entry();

}  // namespace cadre::tune
