#include "tune/failure_policy.h"

#include <algorithm>
#include <cmath>

namespace cadre::tune {

bool count_failure(Trial& trial, const FailureConfig& config) {
  ++trial.futile_attempts;
  if (trial.restoring && trial.restore_failures < config.max_restore_failures) {
    ++trial.restore_failures;
    return true;
  }
  ++trial.failures;
  return config.max_failures < 0 || trial.failures <= config.max_failures;
}

double retry_delay_s(std::int64_t futile_attempts) {
  constexpr std::int64_t at_once = 2;
  constexpr double longest = 60;
  if (futile_attempts <= at_once) return 0;
  return std::min(std::exp2(static_cast<double>(futile_attempts - at_once - 1)), longest);
}

}  // namespace cadre::tune
