// Suggestions for misspelt names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cadre::cli {

// Returns the names that differ from `name` by a few letters, in their case, or by a prefix or suffix; the
// nearest first, at most three.
std::vector<std::string> near_names(std::string_view name, const std::vector<std::string>& names);

}  // namespace cadre::cli
