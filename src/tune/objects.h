// The objects that an experiment's options and trials refer to: which they are, who can still use them, and their
// files.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "run/object_uses.h"
#include "tune/options/faults.h"
#include "tune/trial.h"

namespace cadre::tune {

// What trials can still use: as long as one is to come, has not ended, or has failed and may be taken up again,
// everything in the experiment's description (description.h) and in the configs of those trials. Otherwise nothing.
std::vector<run::ObjectUse> objects_in_use(const Dict& description, std::span<const Trial> trials,
                                           std::int64_t trials_to_come);

// Adds what is wrong with references of a new experiment: to what is no object, or to one that nobody holds.
void check_objects(const Dict& description, Faults& faults);
}  // namespace cadre::tune
