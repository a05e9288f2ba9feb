// How long to wait before what fails again and again is tried again. Pure.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace cadre::run {

// Seconds before the next attempt where the last ones, so many, have all failed without a new result: 0 after the first
// two, then 1, twice as many after each further one, and at most 60.
inline double retry_delay_s(std::int64_t futile_attempts) {
  constexpr std::int64_t at_once = 2;
  constexpr double longest = 60;
  if (futile_attempts <= at_once) return 0;
  return std::min(std::exp2(static_cast<double>(futile_attempts - at_once - 1)), longest);
}

}  // namespace cadre::run
