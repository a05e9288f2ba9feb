// Check of a Program, before anything runs.
#pragma once

#include "cadre/faults.h"
#include "cadre/tune/tuner.h"

namespace cadre::tune {

// The search space must be valid.
void check_program(const Program& program, const TunerOptions& options, Faults& faults);

}  // namespace cadre::tune
