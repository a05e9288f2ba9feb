// What a trainable needs and can do, against the options that ask for it.
#pragma once

#include "cadre/tune/tuner.h"
#include "tune/options/faults.h"

namespace cadre::tune {

void check_trainable(const Trainable& trainable, const TunerOptions& options, Faults& faults);

}  // namespace cadre::tune
