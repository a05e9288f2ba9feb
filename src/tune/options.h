// What a user asks for: made complete, checked before anything runs, and described for the store.
#pragma once

#include <string>

#include "cadre/tune/tuner.h"

namespace cadre::tune {

// Fills in what has a default that depends on something else: the scheduler's metric and mode, and the TuneConfig's.
TunerOptions resolve(TunerOptions options);

// Throws InvalidArgument with all faults of the options in one message, one a line, each with the name of the option.
void check_options(const Trainable& trainable, const TunerOptions& options);

// All options that decide what an experiment is, to be stored with it and compared when it is restored.
Dict describe(const Trainable& trainable, const TunerOptions& options);

}  // namespace cadre::tune
