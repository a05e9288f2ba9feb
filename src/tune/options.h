// What a user asks for: made complete, and checked before anything runs.
#pragma once

#include <string>

#include "cadre/tune/tuner.h"

namespace cadre::tune {

// Fills in what has a default that depends on something else: the scheduler's metric and mode, and the TuneConfig's.
TunerOptions resolve(TunerOptions options);

// Throws InvalidArgument with all faults of the options in one message, one a line, each with the name of the option.
void check_options(const Trainable& trainable, const TunerOptions& options);

}  // namespace cadre::tune
