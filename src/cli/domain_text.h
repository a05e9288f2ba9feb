// Entries of a search space as they are written on the command line.
#pragma once

#include <string>
#include <utility>

#include "cadre/tune/search_space.h"

namespace cadre::cli {

// Returns the key and the entry of "lr=loguniform(1e-5, 1)" or "epochs=10": one of the functions of
// cadre/tune/search_space.h, with its arguments as JSON, or a constant as JSON. Throws InvalidArgument.
std::pair<std::string, tune::SpaceEntry> parse_parameter(const std::string& text);

}  // namespace cadre::cli
