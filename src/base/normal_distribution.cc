#include "base/normal_distribution.h"

#include <cmath>
#include <numbers>
#include <unsupported/Eigen/SpecialFunctions>

namespace cadre::base {

double normal_probability(double value) { return 0.5 * std::erfc(-value / std::numbers::sqrt2); }

// Source of the series for large negative values: Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.2.12.
double log_normal_probability(double value) {
  if (value > -20) return std::log(normal_probability(value));
  const double square = value * value;
  double term = 1;
  double sum = 1;
  for (int i = 1; i < 8; ++i) {
    term *= -(2 * i - 1) / square;
    sum += term;
  }
  return -0.5 * square - std::log(-value) - 0.5 * std::log(2 * std::numbers::pi) + std::log(sum);
}

double normal_quantile(double probability) { return Eigen::numext::ndtri(probability); }

}  // namespace cadre::base
