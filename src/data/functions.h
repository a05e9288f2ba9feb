// The functions and classes of the program that datasets may call, by kind and name.
#pragma once

#include <string_view>

#include "cadre/data/functions.h"

namespace cadre::data {

// Throws InvalidArgument if this program has none with this kind and name.
detail::BatchCallFactory find_batch_call(std::string_view kind, std::string_view name);

}  // namespace cadre::data
