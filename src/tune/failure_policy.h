// What becomes of a trial whose worker failed. Pure.
#pragma once

#include "cadre/failure_config.h"
#include "tune/trial.h"

namespace cadre::tune {

// Counts a failure of the trial's present worker. True when the trial is to be tried again.
bool count_failure(Trial& trial, const FailureConfig& config);

// Seconds until a trial is tried again whose last attempts, so many, have all failed without a new result: 0 after the
// first two, then 1, twice as many after each further one, and at most 60.
double retry_delay_s(std::int64_t futile_attempts);

}  // namespace cadre::tune
