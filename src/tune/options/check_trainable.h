// Checks of a trainable's needs and abilities against the options.
#pragma once

#include "cadre/faults.h"
#include "cadre/tune/tuner.h"

namespace cadre::tune {

void check_trainable(const Trainable& trainable, const TunerOptions& options, Faults& faults);

}  // namespace cadre::tune
