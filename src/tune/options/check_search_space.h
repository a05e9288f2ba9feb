// What can be wrong with a search space, and with what draws from it.
#pragma once

#include <cstdint>
#include <string>

#include "cadre/tune/tuner.h"
#include "tune/options/faults.h"

namespace cadre::tune {

void check_space(const Space& space, Faults& faults);
void check_domain(const Domain& domain, const std::string& name, Faults& faults);
void check_function(const SampleFrom& function, const std::string& name, Faults& faults);

// The points to evaluate, and how many trials there are. The space must be sound.
void check_trials(const TunerOptions& options, Faults& faults);
// Whether a training function that takes a struct can take the configs. The space must be sound.
void check_config_type(const Trainable& trainable, const TunerOptions& options, Faults& faults);

// The entry of a key, nullptr where there is none; and the keys that there are, for messages.
const SpaceEntry* find(const Space& space, const std::string& key);
std::string keys_of(const Space& space);

}  // namespace cadre::tune
