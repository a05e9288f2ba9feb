// Suggestions by the ratio of two densities: of good trials and of bad ones. TPE and BOHB are made of it.
#pragma once

#include <cstddef>
#include <vector>

#include "base/random.h"
#include "cadre/tune/parameters.h"
#include "tune/searchers/parzen_estimator.h"

namespace cadre::tune {

// Parameters that have one joint density, and exist together.
using Group = std::vector<std::size_t>;

// Returns the groups, that of a choice before those that exist under one of its options. `multivariate`: those that
// always exist are one group; `by_condition`: so are those that exist under the same option.
std::vector<Group> groups_of(const Parameters& parameters, bool multivariate, bool by_condition);

// Settled points of good and of bad trials, both in order of trials.
struct Division {
  std::vector<const Point*> good = {};
  std::vector<const Point*> bad = {};
};

struct RatioSearch {
  std::size_t candidates = 24;
  ParzenEstimator::Smoothing smoothing = {};
  bool group_by_group = false;  // true: takes the best candidate in each group, not in all together
};

// Returns the weights of trials, the oldest first: from 1 / count they grow linearly to 1, the weight of the latest 25.
// Source: Bergstra, Yamins and Cox 2013, "Making a Science of Model Search".
std::vector<double> weights_by_age(std::size_t count);

// Returns the bandwidth of all Gaussians with so many trials. It is the same for good and bad trials, so that the ratio
// of their densities depends on where they lie, not on how many they are; with bandwidths by the distances of
// neighbours, as Hyperopt and Optuna have them, good trials of few are smoothed too much.
double bandwidth_with(std::size_t trials);

// Draws candidates from the density of the good trials; returns the one at which that density is highest in relation to
// the density of the bad trials.
Point best_by_ratio(const Parameters& parameters, const std::vector<Group>& groups, const Division& division,
                    const RatioSearch& search, base::RandomStream& random);

}  // namespace cadre::tune
