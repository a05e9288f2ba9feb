// Stop criteria, checked before anything runs.
#pragma once

#include "cadre/tune/stop.h"
#include "tune/options/faults.h"

namespace cadre::tune {

void check_stop(const Stop& stop, Faults& faults);

}  // namespace cadre::tune
