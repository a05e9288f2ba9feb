// Names of types as they stand in the source.
#pragma once

#include <string>
#include <typeinfo>

namespace cadre::base {

// "cadre::Error"; what the compiler calls it where that cannot be read.
std::string type_name(const std::type_info& type);

}  // namespace cadre::base
