// The standard deviation of numbers.
#pragma once

#include <vector>

namespace cadre::tune {

// Returns the standard deviation of a population, not of a sample, like numpy.std.
double standard_deviation(const std::vector<double>& values);

}  // namespace cadre::tune
