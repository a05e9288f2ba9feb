// Conversion of a nested row to columns.
#pragma once

#include "cadre/value.h"

namespace cadre::loggers {

// Flattens nested dictionaries to keys such as "eval/accuracy", which follow the keys that are not nested. Lists stay
// as they are. Empty dictionaries are dropped. Source: Ray Tune's flattening.
Dict flatten(const Dict& entries);

}  // namespace cadre::loggers
