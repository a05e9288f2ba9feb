// Type names as written in the source.
#pragma once

#include <string>
#include <typeinfo>

namespace cadre::base {

// Returns for example "cadre::Error"; the mangled name if it cannot be demangled.
std::string type_name(const std::type_info& type);

}  // namespace cadre::base
