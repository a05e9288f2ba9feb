// Completion and checks of the user's options, before anything runs.
#pragma once

#include <string>
#include <vector>

#include "cadre/tune/tuner.h"

namespace cadre::tune {

// Fills in defaults that depend on other options: metric and direction of all options that lack them from the
// TuneConfig, or the TuneConfig's from the scheduler; the direction of plain numbers in `stop`; checkpoint_frequency
// and checkpoint_at_end by the kind of trainable. Puts bounds in order, and reads the policy file of a replay; adds a
// note for the user about each correction. Throws InvalidArgument if the file cannot be read.
TunerOptions resolve(const Trainable& trainable, TunerOptions options, std::vector<std::string>& notes);

// Location of the objects that options refer to: held by this process, or files of the experiment.
enum class ObjectsAre { held, files };

// Throw InvalidArgument with all faults of the options in one message, one per line, each with the name of the option:
// check_search() of what a Study uses, check_options() of all.
void check_search(const TunerOptions& options);
void check_options(const Trainable& trainable, const TunerOptions& options, ObjectsAre objects = ObjectsAre::held);

}  // namespace cadre::tune
