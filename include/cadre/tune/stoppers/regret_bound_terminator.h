/// \file
/// Ends an experiment when its best trial can hardly be improved any more.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "cadre/checkpoint_config.h"
#include "cadre/tune/stopper.h"

namespace cadre::tune {

/// An error of evaluations that is known: differences below it do not matter.
struct StaticError {
  double constant = 0;  ///< in units of the metric, above 0
};

/// The standard error of the best trial's metric, if that is the mean of scores of a cross-validation: the square root
/// of their variance (of the population) times 1 / k + 1 / (k - 1), where k is their number.
struct CrossValidationError {
  /// Metric with the list of at least two scores, in the last result of each trial: {"cv_scores", list(0.9, 0.8)}.
  std::string scores = "cv_scores";
};

/// A fraction of the median of the first regret bounds: of those after each of the first trials.
/// Source: Ishibashi et al. (2023), "A Stopping Criterion for Bayesian Optimization by the Gap of Expected Minimum
/// Simple Regrets", https://proceedings.mlr.press/v206/ishibashi23a.html.
struct MedianError {
  std::int64_t warm_up_trials = 10;    ///< first trials that do not count, 0 or more
  std::int64_t n_initial_trials = 20;  ///< trials after those, at least 1
  double threshold_ratio = 0.01;       ///< fraction of the median, above 0
};

/// Ends all trials when the regret of the best one, the amount by which another config could be better, is below the
/// error of an evaluation: an upper bound of the regret, which holds with a probability of 90 % under a Gaussian
/// process of the metric over the search space (Makarova et al., 2022, "Automatic Termination for Hyperparameter
/// Optimization", https://proceedings.mlr.press/v188/makarova22a.html).
///
/// The behaviour is that of Optuna's Terminator with its RegretBoundEvaluator where nothing else is said. A trial
/// counts with its last result when it has terminated; one that a scheduler stopped early, one that has failed, and one
/// whose metric is no finite number or whose config is not of the space, do not count. The bound is the least upper
/// confidence bound of a loss among the best trials, minus the least lower one in the space. Here the latter is also
/// searched for along its gradient, not only among random points, so the bound may be larger; and at most the 150 best
/// trials are modelled. The model's kernel and priors are those of GaussianProcess. A bound takes some 100 milliseconds
/// after each end of a trial.
///
/// The search space must be one of Parameters, so without grids, and the scheduler must not change configs as
/// Population Based Training does.
struct RegretBoundTerminator {
  Objective metric = {};          ///< by name or path; default: the TuneConfig's
  std::optional<Mode> mode = {};  ///< needed, unless `metric` has a direction or is the TuneConfig's metric
  /// The error of an evaluation.
  std::variant<StaticError, CrossValidationError, MedianError> error = CrossValidationError{};
  double top_trials_ratio = 0.5;   ///< share of the trials that are modelled, the best ones; above 0, at most 1
  std::int64_t min_n_trials = 20;  ///< trials that count before it can end the experiment, and are modelled; at least 2

  std::unique_ptr<Stopper> make(const StopperSetting& setting) const;  ///< returns the stopper
  void check(const TunerOptions& options, Faults& faults) const;       ///< finds what is wrong
  Stopper::Traits traits() const;                                      ///< returns what it reads
};

namespace detail {
extern template class HeldOptionsOf<Stopper, StopperSetting, RegretBoundTerminator>;
inline const bool knows_regret_bound_terminator =
    HeldOptionsOf<Stopper, StopperSetting, RegretBoundTerminator>::known();
}  // namespace detail

}  // namespace cadre::tune
