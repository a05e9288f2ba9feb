// Delays before retries. Pure.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/random.h"

namespace cadre::base {

// When to retry a failed operation.
enum class TryAgain { never, later, when_there_is_space };

// Returns the seconds before the next attempt if the last `futile_attempts` all failed without a new result: 0 after
// the first two, then 1, doubled after each further one, at most 60.
inline double retry_delay_s(std::int64_t futile_attempts) {
  constexpr std::int64_t at_once = 2;
  constexpr double longest = 60;
  if (futile_attempts <= at_once) return 0;
  return std::min(std::exp2(static_cast<double>(futile_attempts - at_once - 1)), longest);
}

// Maximum number of tries of an upload that fails with a possibly transient error.
inline constexpr std::int64_t most_upload_tries = 3;

// Returns the seconds before the next try of an upload that has failed `tries` times, 1 or more: 1, doubled each time,
// times 0.8 to 1.2 depending on the upload's number, so that uploads that failed together are not retried together.
inline double upload_retry_delay_s(std::int64_t number, std::int64_t tries) {
  base::RandomStream random(0, static_cast<std::uint32_t>(number), base::Purpose::upload_retry,
                            static_cast<std::uint64_t>(tries));
  return std::exp2(static_cast<double>(tries - 1)) * (0.8 + 0.4 * random.uniform());
}

}  // namespace cadre::base
