#include "tune/stoppers/standard_deviation.h"

#include <cmath>

namespace cadre::tune {

double standard_deviation(const std::vector<double>& values) {
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  double variance = 0;
  for (const double value : values) variance += (value - mean) * (value - mean) / static_cast<double>(values.size());
  return std::sqrt(variance);
}

}  // namespace cadre::tune
