// What trials need: as their trainable says, or by their configs.
#pragma once

#include <string>

#include "cadre/tune/trainable.h"
#include "tune/options/faults.h"
#include "tune/trial.h"

namespace cadre::tune {

class ResourceNeeds {
 public:
  explicit ResourceNeeds(const Trainable& trainable);

  // Whether trials may need different amounts.
  bool by_config() const { return function_ != nullptr; }
  // What every trial needs where that does not depend on its config.
  const Resources& usual() const { return fixed_.total; }
  // Throws InvalidArgument for amounts that nobody can have, and what a user's function throws.
  Needs operator()(const Config& config) const;

 private:
  Needs fixed_;
  detail::ResourcePointer function_ = nullptr;
};

// Adds what is wrong with amounts that a trial is to have.
void check_resources(const PlacementGroup& group, Faults& faults);

// As with_resources was given it.
PlacementGroup placement_group(const Trainable& trainable);

}  // namespace cadre::tune
