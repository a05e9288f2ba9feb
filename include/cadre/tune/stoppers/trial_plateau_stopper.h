/// \file
/// Ends trials that have stopped changing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "cadre/checkpoint_config.h"
#include "cadre/tune/stopper.h"

namespace cadre::tune {

/// Ends a trial when its metric has stopped changing: when the standard deviation (of the population) of its last
/// `num_results` values is below `std`. Results without a finite number do not count.
struct TrialPlateauStopper {
  Objective metric = {};                        ///< by name or path; default: the TuneConfig's
  double std = 0.01;                            ///< above 0
  std::int64_t num_results = 4;                 ///< at least 1
  std::int64_t grace_period = 4;                ///< results before the stopper can end the trial, 0 or more
  std::optional<double> metric_threshold = {};  ///< value that the metric must reach first; needs a mode
  /// min: the metric must have fallen to metric_threshold; max: it must have risen to it. Default: the direction of
  /// `metric`, or of the TuneConfig's metric if it is the same one.
  std::optional<Mode> mode = {};

  std::unique_ptr<Stopper> make(const StopperSetting& setting) const;    ///< returns the stopper
  void check(const TunerOptions& options, Faults& faults) const;         ///< finds what is wrong
  Stopper::Traits traits() const { return {.metrics = {metric.name}}; }  ///< returns what it reads
};

namespace detail {
extern template class HeldOptionsOf<Stopper, StopperSetting, TrialPlateauStopper>;
inline const bool knows_trial_plateau_stopper = HeldOptionsOf<Stopper, StopperSetting, TrialPlateauStopper>::known();
}  // namespace detail

}  // namespace cadre::tune
