// Values of configs and results as they stand in the document of a report, where JavaScript reads them.
#pragma once

#include "cadre/value.h"

namespace cadre::report {

// Returns null for no value, numbers and texts as they are, and a dictionary for what JSON or a double of JavaScript
// cannot hold: {"number": "NaN"}, {"number": "4611686018427387904"} for integers of 2^53 and more, {"json": "[1, 2]"}
// for every other value.
Value cell_of(const Value* value);

// Returns a number for a curve: whole numbers below 10^15 as they are, others rounded to seven significant digits,
// null where it is not finite.
Value point_of(double number);

}  // namespace cadre::report
