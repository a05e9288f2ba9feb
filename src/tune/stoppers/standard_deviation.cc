#include "tune/stoppers/standard_deviation.h"

#include <cmath>

namespace cadre::tune {

double standard_deviation(const std::vector<double>& values) {
  const auto size = static_cast<double>(values.size());
  const double origin = values.empty() ? 0 : values.front();  // so that rounding leaves 0 for equal values
  double mean = 0;
  for (const double value : values) mean += (value - origin) / size;
  double variance = 0;
  for (const double value : values) variance += (value - origin - mean) * (value - origin - mean) / size;
  return std::sqrt(variance);
}

}  // namespace cadre::tune
