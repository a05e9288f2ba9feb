#include "control/config_struct.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace cadre::control {

bool has_member(const detail::ConfigStruct& type, std::string_view key) {
  return std::ranges::find(type.members, key) != type.members.end();
}

std::string no_such_member(const detail::ConfigStruct& type, std::string_view function) {
  return fmt::format("the struct that {} takes has no such member; it has: {}", function,
                     fmt::join(type.members, ", "));
}

}  // namespace cadre::control
