// A nested row as one of columns.
#pragma once

#include "cadre/value.h"

namespace cadre::run {

// Nested dictionaries as "eval/accuracy", behind the keys that are not nested. Lists stay as they are. Empty
// dictionaries vanish. Source: Ray Tune's flattening.
Dict flatten(const Dict& entries);

}  // namespace cadre::run
