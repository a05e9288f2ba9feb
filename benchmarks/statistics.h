// Numbers that stand for many measurements of one thing.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace cadre::bench {

// The smallest of the values that at least a share `rank` of them, from 0 to 1, does not exceed. `values` is not empty.
inline double quantile(std::vector<double> values, double rank) {
  const auto above = std::max(1.0, std::ceil(rank * static_cast<double>(values.size())));
  const auto found = values.begin() + static_cast<std::ptrdiff_t>(above) - 1;
  std::nth_element(values.begin(), found, values.end());
  return *found;
}

inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

inline double best(const std::vector<double>& values) { return *std::ranges::min_element(values); }

}  // namespace cadre::bench
