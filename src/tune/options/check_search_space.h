// Checks of a search space, and of options that refer to it.
#pragma once

#include <cstdint>
#include <string>

#include "cadre/faults.h"
#include "cadre/tune/tuner.h"

namespace cadre::tune {

void check_space(const Space& space, Faults& faults);
void check_domain(const Domain& domain, const std::string& name, Faults& faults);
void check_function(const SampleFrom& function, const std::string& name, Faults& faults);

// Checks values by key or path that a trial's config is to have; `name` is for the faults.
void check_point(const Dict& point, const Space& space, const std::string& name, Faults& faults);
// Checks the points to evaluate and the number of trials. The space must be valid.
void check_trials(const TunerOptions& options, Faults& faults);
// Checks that a training function that takes a struct accepts the configs. The space must be valid.
void check_config_type(const Trainable& trainable, const TunerOptions& options, Faults& faults);

// find() returns the entry of a key, nullptr if there is none; keys_of() returns all keys, for messages.
const SpaceEntry* find(const Space& space, const std::string& key);
std::string keys_of(const Space& space);

}  // namespace cadre::tune
