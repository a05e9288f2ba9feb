// The objects that an experiment's options and trials refer to.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cadre/faults.h"
#include "control/object_uses.h"
#include "tune/trial.h"

namespace cadre::tune {

// Returns the objects that trials can still use: all in the experiment's description (description.h) and in the configs
// of trials that have not terminated (a restore may run failed trials again). Empty if all trials have terminated and
// none is to come.
std::vector<control::ObjectUse> objects_in_use(const Dict& description, std::span<const Trial> trials,
                                               std::int64_t trials_to_come);

// Adds faults for references of a new experiment to something that is not an object, to an object that no ObjectRef
// holds, or to a checkpoint that is not there.
void check_objects(const Dict& description, Faults& faults);
}  // namespace cadre::tune
