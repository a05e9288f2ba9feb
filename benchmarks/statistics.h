// Statistics of repeated measurements.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace cadre::bench {

// Returns the smallest value v such that at least a share `rank` of the values, from 0 to 1, is at most v. `values` is
// not empty.
inline double quantile(std::vector<double> values, double rank) {
  const auto above = std::max(1.0, std::ceil(rank * static_cast<double>(values.size())));
  const auto found = values.begin() + static_cast<std::ptrdiff_t>(above) - 1;
  std::nth_element(values.begin(), found, values.end());
  return *found;
}

inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

inline double best(const std::vector<double>& values) { return *std::ranges::min_element(values); }

}  // namespace cadre::bench
