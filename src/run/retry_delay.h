// How long to wait before what fails again and again is tried again. Pure.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/random.h"

namespace cadre::run {

// When what has failed is worth another try.
enum class TryAgain { never, later, when_there_is_space };

// Seconds before the next attempt where the last ones, so many, have all failed without a new result: 0 after the first
// two, then 1, twice as many after each further one, and at most 60.
inline double retry_delay_s(std::int64_t futile_attempts) {
  constexpr std::int64_t at_once = 2;
  constexpr double longest = 60;
  if (futile_attempts <= at_once) return 0;
  return std::min(std::exp2(static_cast<double>(futile_attempts - at_once - 1)), longest);
}

// So often an upload is tried that fails from what may go away by itself.
inline constexpr std::int64_t most_upload_tries = 3;

// Seconds before an upload is tried again that has failed so many times, 1 or more: 1, then twice as many each time,
// times 0.8 to 1.2 by the upload's number, so that those which failed together do not come back together.
inline double upload_retry_delay_s(std::int64_t number, std::int64_t tries) {
  base::RandomStream random(0, static_cast<std::uint32_t>(number), base::Purpose::upload_retry,
                            static_cast<std::uint64_t>(tries));
  return std::exp2(static_cast<double>(tries - 1)) * (0.8 + 0.4 * random.uniform());
}

}  // namespace cadre::run
