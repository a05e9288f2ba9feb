// An experiment's stored options as a person reads them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cadre/value.h"

namespace cadre::cli {

// Labels and printable texts, in the order in which they are shown; what is at its default is left out.
std::vector<std::pair<std::string, std::string>> option_texts(const Config& options);

}  // namespace cadre::cli
