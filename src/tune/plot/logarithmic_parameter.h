// The scale of a hyper-parameter in pictures.
#pragma once

#include <string_view>

#include "cadre/value.h"

namespace cadre::tune {

// Returns true if a search space, as it is stored, draws the parameter at a path logarithmically.
bool is_drawn_logarithmically(const Value& space, std::string_view path);

}  // namespace cadre::tune
