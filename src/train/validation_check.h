// Checks of a validation's config and resources.
#pragma once

#include <string>

#include "cadre/resources.h"
#include "cadre/value.h"

namespace cadre::train {

// Throws InvalidArgument if a value is too large or too deep; the message begins with `doing` and names the value.
void check_validation_config(const Config& config, const std::string& doing);

// Returns the first fault of amounts and selectors; empty if there is none.
std::string fault_of_resources(const Resources& resources);

}  // namespace cadre::train
