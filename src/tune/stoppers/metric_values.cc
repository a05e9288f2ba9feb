#include "tune/stoppers/metric_values.h"

#include <cmath>

namespace cadre::tune {

double standard_deviation(const std::vector<double>& values) {
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  double variance = 0;
  for (const double value : values) variance += (value - mean) * (value - mean) / static_cast<double>(values.size());
  return std::sqrt(variance);
}

std::optional<double> finite_number(const Metrics& result, const std::string& metric) {
  std::optional<double> number = result.number(metric);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

}  // namespace cadre::tune
