// Configs for functions that take a struct.
#pragma once

#include <string>
#include <string_view>

#include "cadre/typed_config.h"

namespace cadre::run {

bool has_member(const detail::ConfigStruct& type, std::string_view key);
// Why a key that is no member cannot be in the config of a function, for people.
std::string no_such_member(const detail::ConfigStruct& type, std::string_view function);

}  // namespace cadre::run
