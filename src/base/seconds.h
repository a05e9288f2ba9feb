// Durations in seconds, as users give them, for clocks that count nanoseconds.
#pragma once

#include <algorithm>
#include <chrono>

namespace cadre::base {

// Returns the duration, at most 100 years: 64 bits hold the nanoseconds of 292, and a huge number of seconds means
// "never".
inline std::chrono::nanoseconds to_nanoseconds(std::chrono::duration<double> time) {
  constexpr std::chrono::duration<double> longest = std::chrono::hours(100 * 365 * 24);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::min(time, longest));
}

}  // namespace cadre::base
