// Checks of the description of a scheduler.
#pragma once

#include "cadre/tune/tuner.h"
#include "control/faults.h"

namespace cadre::tune {

// Prefix of messages about a replay.
inline constexpr const char* kReplay = "scheduler (PopulationBasedTrainingReplay) ";

void check_scheduler(const TunerOptions& options, control::Faults& faults);

}  // namespace cadre::tune
