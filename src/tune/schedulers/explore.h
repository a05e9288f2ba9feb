// Changing a donor's config for the trial that takes it over.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cadre/faults.h"
#include "cadre/tune/schedulers/population_based_training.h"
#include "cadre/tune/search_space.h"

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
  std::string basis = {};  // of the choice, for the log: " by ..."; empty: the perturbations tell it
};

// Returns the top-level keys that are new or have another value in `after`, all with the same `operation`, for the
// record.
std::vector<Perturbation> changes(const Config& before, const Config& after, const std::string& operation);

// Returns the keys and operations, for the record.
std::vector<std::pair<std::string, std::string>> operations_of(const std::vector<Perturbation>& perturbations);

// Returns the donor's config with each mutated key changed, in the order of the mutations (see
// PopulationBasedTraining). For each key the stream gives one uniform number, which is below resample_probability for a
// new draw; then, for a draw, what sample() consumes; otherwise one number for the direction (0: left) or the factor
// (0: the first). A value that is not in its list, and a value that is not a number where the domain has numbers, is
// always drawn anew. User functions get the same stream; their exceptions are passed on. A number that would remain the
// same multiple of its step (1 for an integer, else the domain's q) after the multiplication moves by one step instead.
// Integers stay within 2^62.
// Source: the explore step of Ray Tune's PopulationBasedTraining, with the differences listed in docs/from-ray-tune.md.
Explored explore(const Config& donor, const PopulationBasedTraining& settings, base::RandomStream& random);

// Calls the user's function, if there is one, with the explored config, which becomes what it returns. Passes on its
// exceptions.
void customize(Explored& explored, const ExploreFunction& function, base::RandomStream& random);

// Returns a drawn number as an integer, rounded, or as a real, whichever the old value is.
Value with_type_of(const Value& old_value, const Value& drawn);

// Adds the faults of mutations of a search space's keys.
void check_mutations(const Mutations& mutations, const Space& space, Faults& faults,
                     const std::string& option = "hyperparam_mutations ");
// Puts the bounds of all domains in order; adds a note for each that was reversed.
Mutations with_sorted_bounds(const Mutations& mutations, const std::string& path, std::vector<std::string>& notes);
// Returns the paths of the keys that are mutated.
std::vector<std::string> mutated_keys(const Mutations& mutations);

}  // namespace cadre::tune
