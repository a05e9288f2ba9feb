#include "base/value_limits.h"

#include <algorithm>

namespace cadre::base {

std::size_t stored_bytes(const Value& value) {
  if (value.is_string()) return value.get<std::string>().size();
  return value.is_dict() || value.is_list() ? to_json(value).size() : 0;
}

bool is_deeper_than(const Value& value, std::size_t levels) {
  if (!value.is_list() && !value.is_dict()) return false;
  if (levels == 0) return true;
  if (value.is_list())
    return std::ranges::any_of(value.items(), [&](const Value& item) { return is_deeper_than(item, levels - 1); });
  return std::ranges::any_of(value.dict(), [&](const auto& entry) { return is_deeper_than(entry.second, levels - 1); });
}

}  // namespace cadre::base
