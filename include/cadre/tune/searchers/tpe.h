/// \file
/// Tree-structured Parzen Estimator.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cadre/checkpoint_config.h"
#include "cadre/tune/constraint.h"
#include "cadre/tune/searcher.h"

namespace cadre::tune {

/// Tree-structured Parzen Estimator (Bergstra et al., 2011, "Algorithms for Hyper-Parameter Optimization"; Watanabe,
/// 2023, "Tree-Structured Parzen Estimator: Understanding Its Algorithm Components", https://arxiv.org/abs/2304.11127).
///
/// Trials are divided into few good and many bad ones. Configs are drawn from a density of the good ones, and the one
/// is suggested where that density is highest in relation to a density of the bad ones. Optuna's TPESampler with two
/// differences: all kernels of numbers have one bandwidth, 0.45 / sqrt(trials + 2) of the range or 0.01; and configs of
/// conditional spaces are compared as a whole.
///
/// Conditional spaces: choices are drawn first, then the parameters under their options, whose densities are made of
/// the trials that have them; see `group`. Failed trials count for nothing, nor do those without all metrics in their
/// last result. A trial that a scheduler stopped is worse than every complete one; among such trials the one with more
/// iterations is better, then the one with the better metric. NaN and infinite losses are worst, and never good.
/// Parallel trials: see `constant_liar`. Constraints: trials that keep them all are better than the others, among which
/// the smaller violation is better.
///
/// Several metrics (Ozaki et al., 2022, "Multiobjective Tree-Structured Parzen Estimator",
/// https://doi.org/10.1613/jair.1.13188): the good trials are the first non-dominated fronts, and of the last of these
/// fronts the trials that together dominate the largest volume.
struct TPE {
  std::int64_t n_startup_trials = 10;  ///< configs are random until so many trials have ended with a result; from 0
  std::int64_t n_ei_candidates = 24;   ///< configs drawn for each suggestion, of which it is the best; from 1
  double gamma = 0.1;                  ///< share of the trials that are good, rounded up; above 0, below 1
  std::int64_t max_good_trials = 25;   ///< at most so many are good, unless there are several metrics; from 1
  double prior_weight = 1;             ///< weight of the prior over the whole space, where a trial has 1; above 0
  /// Parameters that always exist form one joint density. False: each has its own, independent of the others.
  bool multivariate = true;
  /// Parameters that exist under the same option of a choice form a joint density too, if `multivariate`. False: each
  /// has its own.
  bool group = true;
  bool constant_liar = true;                 ///< open trials count as bad ones, which keeps parallel trials apart
  std::vector<Objective> metrics = {};       ///< with directions; default: TuneConfig::metric
  std::vector<Constraint> constraints = {};  ///< limits on metrics of the last result

  std::unique_ptr<Searcher> make(const SearcherSetting& setting) const;  ///< returns the searcher
  void check(const TunerOptions& options, Faults& faults) const;         ///< finds what is wrong
};

namespace detail {
extern template class HeldOptionsOf<Searcher, SearcherSetting, TPE>;
inline const bool knows_tpe = HeldOptionsOf<Searcher, SearcherSetting, TPE>::known();
}  // namespace detail

}  // namespace cadre::tune
