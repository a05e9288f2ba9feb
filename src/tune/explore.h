// How a config changes when a trial takes it over from a better one.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cadre/tune/schedulers.h"

namespace cadre::tune {

// One mutated hyper-parameter: "lr", 0.1, "* 1.2", 0.12. Nested keys are paths.
struct Perturbation {
  std::string key;
  Value old_value;
  std::string operation;
  Value new_value;
};

struct Explored {
  Config config;
  std::vector<Perturbation> perturbations;
};

// Which top-level keys of a config are new or have another value, all by the same `operation`; for the record.
std::vector<Perturbation> changes(const Config& before, const Config& after, const std::string& operation);

// The donor's config with each mutated key changed, in the order of the mutations (see PopulationBasedTraining).
// For each key the stream gives: one uniform number that is below resample_probability for a new draw; then, for a
// draw, what sample() takes; otherwise one for the direction (0: left) or the factor (0: the first). A value that has
// no place in its list, and one that is no number where the domain has numbers, is always drawn anew. Functions of the
// program get the same stream; what they throw is passed on. A number that would be the same multiple of its step (1
// for an integer, else the domain's q) after it was multiplied moves by one step instead. Integers stay within 2^62.
// Source: the explore step of Ray Tune's PopulationBasedTraining, with the differences of docs/from-ray-tune.md.
Explored explore(const Config& donor, const PopulationBasedTraining& settings, base::RandomStream& random);

}  // namespace cadre::tune
