// Checks of stop criteria.
#pragma once

#include "cadre/tune/stop.h"
#include "control/faults.h"

namespace cadre::tune {

// `objective` is the TuneConfig's.
void check_stop(const Stop& stop, const Objective& objective, control::Faults& faults);

}  // namespace cadre::tune
