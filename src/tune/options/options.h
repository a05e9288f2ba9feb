// What a user asks for: made complete, and checked before anything runs.
#pragma once

#include <string>
#include <vector>

#include "cadre/tune/tuner.h"

namespace cadre::tune {

// Fills in what has a default that depends on something else: metric and direction of all that has none of its own from
// the TuneConfig, or the TuneConfig's from the scheduler; the direction of plain numbers in `stop`; a class's
// checkpoint at the end. Puts bounds in order, and reads the policy file of a replay; adds a note for whoever watches
// where something was not as it should be. Throws InvalidArgument where the file cannot be read.
TunerOptions resolve(const Trainable& trainable, TunerOptions options, std::vector<std::string>& notes);

// Where the objects are that options refer to: this process holds them, or they are files of the experiment.
enum class ObjectsAre { held, files };

// Throws InvalidArgument with all faults of the options in one message, one a line, each with the name of the option.
void check_options(const Trainable& trainable, const TunerOptions& options, ObjectsAre objects = ObjectsAre::held);

}  // namespace cadre::tune
