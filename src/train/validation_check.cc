#include "train/validation_check.h"

#include <fmt/format.h>

#include "base/value_limits.h"
#include "cadre/error.h"

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

}  // namespace cadre::train
