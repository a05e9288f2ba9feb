// Checks of stop criteria.
#pragma once

#include "cadre/faults.h"
#include "cadre/tune/tuner.h"

namespace cadre::tune {

// Adds the faults of the stop criteria of completed options.
void check_stop(const TunerOptions& options, Faults& faults);

}  // namespace cadre::tune
