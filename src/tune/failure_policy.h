// What becomes of a trial whose worker failed. Pure.
#pragma once

#include "cadre/failure_config.h"
#include "tune/trial.h"

namespace cadre::tune {

// Counts a failure of the trial's present worker. True when the trial is to be tried again.
bool count_failure(Trial& trial, const FailureConfig& config);

}  // namespace cadre::tune
