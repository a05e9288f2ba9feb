// What a validation may be given.
#pragma once

#include <string>

#include "cadre/value.h"

namespace cadre::train {

// Throws InvalidArgument that begins with `doing` and names the value which is too large or too deep.
void check_validation_config(const Config& config, const std::string& doing);

}  // namespace cadre::train
