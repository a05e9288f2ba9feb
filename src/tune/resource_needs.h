// The resources that trials need: fixed by their trainable, or computed from their configs.
#pragma once

#include <string>

#include "cadre/faults.h"
#include "cadre/tune/trainable.h"
#include "tune/trial.h"

namespace cadre::tune {

class ResourceNeeds {
 public:
  explicit ResourceNeeds(const Trainable& trainable);

  // Returns true if the needs depend on the config.
  bool by_config() const { return !function_.function.empty(); }
  // Returns the needs of every trial, if they do not depend on the config.
  const Needs& usual() const { return fixed_; }
  // Throws InvalidArgument for invalid amounts, and passes on exceptions of the user's function.
  Needs operator()(const Config& config) const;

 private:
  Needs fixed_;
  ResourceFunction function_ = {};
};

// Returns the needs with other amounts in all, none below the former: what is added is for the workers that the trial's
// worker starts, if it may start some, and for itself otherwise. Throws InvalidArgument for amounts that no trial can
// have.
Needs with_total(const Needs& needs, const Resources& total);

// Adds faults of the amounts that a trial is to have.
void check_resources(const PlacementGroup& group, Faults& faults);

// Returns the group as it was given to with_resources.
PlacementGroup placement_group(const Trainable& trainable);

}  // namespace cadre::tune
