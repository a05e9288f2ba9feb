// Trainables of a host (cadre/host.h), which one entry of a worker runs, and the entries of all trainables.
#pragma once

#include <string>

#include "cadre/tune/trainable.h"

namespace cadre::tune {

// Returns the entry of a worker (worker/entries.h) that runs the trainable.
std::string entry_of(const Trainable& trainable);

}  // namespace cadre::tune
