// Decides if a trial whose worker failed is tried again. Pure.
#pragma once

#include "cadre/failure_config.h"
#include "tune/trial.h"

namespace cadre::tune {

// Counts a failure of the trial's present worker. Returns true if the trial is to be tried again.
bool count_failure(Trial& trial, const FailureConfig& config);

}  // namespace cadre::tune
