#include "train/validation_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/value_limits.h"
#include "cadre/error.h"
#include "resources/machine_labels.h"

namespace cadre::train {

void check_validation_config(const Config& config, const std::string& doing) {
  for (const auto& [name, value] : config) {
    if (const std::size_t bytes = base::stored_bytes(value); bytes > base::max_stored_value_bytes)
      throw InvalidArgument(
          fmt::format("{} whose \"{}\" has {} bytes; at most {} are stored: put() it into the object "
                      "store before fit(), and pass the reference",
                      doing, name, bytes, base::max_stored_value_bytes));
    if (base::is_deeper_than(value, base::max_result_depth - 1))
      throw InvalidArgument(fmt::format("{} whose \"{}\" has more than {} levels of lists and dictionaries", doing,
                                        name, base::max_result_depth - 1));
  }
}

std::string fault_of_resources(const Resources& resources) {
  const auto is_amount = [](double amount) { return std::isfinite(amount) && amount >= 0; };
  const bool is_good = is_amount(resources.cpus) && is_amount(resources.gpus) &&
                       std::ranges::all_of(resources.custom, [&](const auto& entry) {
                         return is_amount(entry.second) && !entry.first.empty();
                       });
  return is_good ? resources::fault_of_selectors(resources) : "amounts must be numbers from 0 on, and have names";
}

}  // namespace cadre::train
