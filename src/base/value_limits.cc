#include "base/value_limits.h"

#include <fmt/format.h>

#include "cadre/error.h"

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

void check_metrics(const Metrics& metrics) {
  std::string faults;
  for (const auto& [name, value] : metrics) {
    if (name.empty()) faults += "\n  a metric has an empty name";
    if (is_deeper_than(value, max_result_depth - 1)) {
      faults += fmt::format("\n  metric \"{}\" is nested deeper than {} levels of lists and dictionaries", name,
                            max_result_depth - 1);
      continue;
    }
    if (stored_bytes(value) > max_stored_value_bytes)
      faults += fmt::format(
          "\n  metric \"{}\" has {} bytes; at most {} are stored with a result: put it into a file of "
          "the checkpoint",
          name, stored_bytes(value), max_stored_value_bytes);
  }
  if (!faults.empty()) throw InvalidArgument("a result has what cannot be stored:" + faults);
}

}  // namespace cadre::base
