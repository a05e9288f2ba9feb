// Configs for functions that take a struct.
#pragma once

#include <string>
#include <string_view>

#include "cadre/typed_config.h"

namespace cadre::control {

bool has_member(const detail::ConfigStruct& type, std::string_view key);
// Returns a message that a key is not a member of the struct, with the members that it has.
std::string no_such_member(const detail::ConfigStruct& type, std::string_view function);

}  // namespace cadre::control
