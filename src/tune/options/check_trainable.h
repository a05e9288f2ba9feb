// Checks of a trainable's needs and abilities against the options.
#pragma once

#include "cadre/tune/tuner.h"
#include "tune/options/faults.h"

namespace cadre::tune {

void check_trainable(const Trainable& trainable, const TunerOptions& options, Faults& faults);

}  // namespace cadre::tune
