#include "tune/failure_policy.h"

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

}  // namespace cadre::tune
