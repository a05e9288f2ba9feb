// The distributions of Optuna that an experiment's parameters have there.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cadre/tune/result.h"

namespace cadre::cli {

// A distribution of Optuna's, and its form of a value.
struct OptunaDistribution {
  std::string json = {};     // as optuna.distributions.distribution_to_json writes it
  bool categorical = false;  // values are indices into the choices
  List choices = {};

  // Returns the value as a journal stores it: a number, or the index of the choice. It must be one that was given to
  // optuna_distributions.
  double internal(const Value& value) const;
};

// Returns a distribution for each parameter that the trials drew, or that a scheduler has changed, by its path. It is
// that of the search space, made wider where a trial has a value outside of it, as after an exploit; or one that
// follows from the trials' values, where Optuna has none like the space's: randn, functions, lists.
std::map<std::string, OptunaDistribution> optuna_distributions(const tune::ResultGrid& grid);

// Returns a value as Optuna accepts it as a choice: null, a bool, a number or text; lists and dictionaries as JSON.
Value optuna_choice(const Value& value);

}  // namespace cadre::cli
