/// \file
/// Bayesian optimisation with Gaussian processes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cadre/tune/constraint.h"
#include "cadre/tune/searcher.h"

namespace cadre::tune {

/// Bayesian optimisation: a Gaussian process models the loss, and each trial gets the config with the highest expected
/// improvement. The searcher for trials that take long, so that there are few, up to some hundreds.
///
/// The behaviour is that of Optuna's GPSampler where nothing else is said: a Matérn 5/2 kernel with a length scale for
/// each parameter, fitted by the marginal likelihood with priors, and the logarithm of the expected improvement (Ament
/// et al., 2023, "Unexpected Improvements to Expected Improvement for Bayesian Optimization",
/// https://arxiv.org/abs/2310.20708).
///
/// Parameters within options of a choice are modelled too, with a kernel after Swersky et al. (2014, "Raiders of the
/// Lost Architecture: Kernels for Bayesian Optimization in Conditional Parameter Spaces",
/// https://arxiv.org/abs/1409.4011). Losses are warped before they are modelled, so that outliers among bad ones do not
/// matter; for every other trial, differences of good losses are stretched besides, up to ten times, which is better in
/// long valleys. A trial that has failed, and one whose metric is NaN or infinitely bad, counts as the worst one seen.
/// A trial that a scheduler stopped early counts with its last result, but not as better than the median of those that
/// came to their end. Open trials count as if they had the loss that the model expects, so parallel trials differ
/// (kriging believer: Ginsbourger et al., 2010, "Kriging Is Well-Suited to Parallelize Optimization"). Trials whose
/// config is not of the space, and those without the metric, are left out.
///
/// With constraints, each has a Gaussian process of its own, and the logarithm of the probability that all are kept is
/// added (Gardner et al., 2014, "Bayesian Optimization with Inequality Constraints"); as long as no trial keeps them
/// all, that alone counts.
///
/// Suggestions of normally distributed numbers lie within the middle 99.98 % of their distribution. A suggestion takes
/// some 10 milliseconds; see max_observations.
struct GaussianProcess {
  /// The first suggestions, until so many trials have ended, are a Latin hypercube; from 1 to 100,000.
  std::int64_t n_startup_trials = 10;
  /// True: equal configs have equal losses; otherwise the variance of noise is fitted, too.
  bool deterministic = false;
  /// Number of trials in the model, from 10 to 10,000. If there are more, it has the best half of this number and those
  /// made last. The time of a suggestion grows with its square. Length scales are fitted to at most 120 of them, and
  /// again whenever there are 5 % more, for each of the two warpings.
  std::int64_t max_observations = 300;
  std::vector<Constraint> constraints = {};  ///< limits that results should keep

  std::unique_ptr<Searcher> make(const SearcherSetting& setting) const;  ///< returns the searcher
  void check(const TunerOptions& options, Faults& faults) const;         ///< finds what is wrong
};

namespace detail {
extern template class HeldOptionsOf<Searcher, SearcherSetting, GaussianProcess>;
inline const bool knows_gaussian_process = HeldOptionsOf<Searcher, SearcherSetting, GaussianProcess>::known();
}  // namespace detail

}  // namespace cadre::tune
