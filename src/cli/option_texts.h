// Formats an experiment's stored options for the user.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cadre/value.h"

namespace cadre::cli {

// Returns labels and printable texts in the order shown; options at their default are left out.
std::vector<std::pair<std::string, std::string>> option_texts(const Config& options);

}  // namespace cadre::cli
