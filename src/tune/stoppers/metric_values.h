// The values of a metric, as stoppers count and compare them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cadre/value.h"

namespace cadre::tune {

// Returns the standard deviation of a population, not of a sample, like numpy.std.
double standard_deviation(const std::vector<double>& values);

// Returns the metric's value if it is a finite number.
std::optional<double> finite_number(const Metrics& result, const std::string& metric);

}  // namespace cadre::tune
