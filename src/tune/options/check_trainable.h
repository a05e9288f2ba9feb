// Checks of a trainable's needs and abilities against the options.
#pragma once

#include "cadre/tune/tuner.h"
#include "control/faults.h"

namespace cadre::tune {

void check_trainable(const Trainable& trainable, const TunerOptions& options, control::Faults& faults);

}  // namespace cadre::tune
