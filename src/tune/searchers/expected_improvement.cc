#include "tune/searchers/expected_improvement.h"

#include <cmath>
#include <numbers>

#include "base/normal_distribution.h"

namespace cadre::tune {
namespace {

double log_normal_density(double z) { return -0.5 * z * z - 0.5 * std::log(2 * std::numbers::pi); }

// Returns the logarithm of the expected amount by which a standard normal number is below z.
double log_standard_improvement(double z) {
  constexpr double kSeriesBelow = -50;  // where the difference below loses all its digits
  const double log_density = log_normal_density(z);
  if (z > -1) return std::log(std::exp(log_density) + z * base::normal_probability(z));
  if (z > kSeriesBelow) return log_density + std::log1p(z * std::exp(base::log_normal_probability(z) - log_density));
  const double square = z * z;
  return log_density - std::log(square) + std::log1p(-3 / square + 15 / (square * square));
}

}  // namespace

NormalUtility log_expected_improvement(double mean, double variance, double best) {
  const double deviation = std::sqrt(variance);
  const double z = (best - mean) / deviation;
  const double log_improvement = log_standard_improvement(z);
  const double in_z = std::exp(base::log_normal_probability(z) - log_improvement);
  return {.value = std::log(deviation) + log_improvement,
          .in_mean = -in_z / deviation,
          .in_variance = std::exp(log_normal_density(z) - log_improvement) / (2 * variance)};
}

NormalUtility log_probability_of_feasibility(double mean, double variance, double limit) {
  const double deviation = std::sqrt(variance);
  const double z = (limit - mean) / deviation;
  const double value = base::log_normal_probability(z);
  const double in_z = std::exp(log_normal_density(z) - value);
  return {.value = value, .in_mean = -in_z / deviation, .in_variance = -in_z * z / (2 * variance)};
}

}  // namespace cadre::tune
