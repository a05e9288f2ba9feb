// What can be wrong with the description of a scheduler.
#pragma once

#include "cadre/tune/tuner.h"
#include "tune/options/faults.h"

namespace cadre::tune {

// How messages about a replay begin.
inline constexpr const char* kReplay = "scheduler (PopulationBasedTrainingReplay) ";

void check_scheduler(const TunerOptions& options, Faults& faults);

}  // namespace cadre::tune
