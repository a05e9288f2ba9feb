// Checks of stop criteria.
#pragma once

#include "cadre/faults.h"
#include "cadre/tune/stop.h"

namespace cadre::tune {

// `objective` is the TuneConfig's.
void check_stop(const Stop& stop, const Objective& objective, Faults& faults);

}  // namespace cadre::tune
