// Values that belong to a result and come after it, as what a validation of its checkpoint has found.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "cadre/value.h"

namespace cadre::loggers {

// By the number of the result, from 0.
using Amendments = std::map<std::size_t, Dict>;

// Returns a result with more values, of which later ones replace earlier ones. A dictionary that both have gets the
// entries of both; another value that `row` has under that name stays, and the entries get names such as
// "validation/accuracy".
Dict amended(Dict row, const Dict& more);

// Returns lines of JSON, one for each result, with the amendments.
std::string amended_lines(std::string_view lines, const Amendments& amendments);

}  // namespace cadre::loggers
