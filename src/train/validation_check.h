// Checks of a validation's config.
#pragma once

#include <string>

#include "cadre/value.h"

namespace cadre::train {

// Throws InvalidArgument if a value is too large or too deep; the message begins with `doing` and names the value.
void check_validation_config(const Config& config, const std::string& doing);

}  // namespace cadre::train
