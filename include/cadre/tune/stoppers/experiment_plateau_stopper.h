/// \file
/// Ends an experiment whose best results have stopped improving.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "cadre/checkpoint_config.h"
#include "cadre/tune/stopper.h"

namespace cadre::tune {

/// Ends all trials when their best results have stopped improving: when the standard deviation (of the population) of
/// the `top` best values has been at most `std` for `patience` results (at least one). Results without a finite number
/// do not count.
struct ExperimentPlateauStopper {
  Objective metric = {};  ///< by name or path; default: the TuneConfig's
  double std = 0.001;     ///< 0 or more
  std::int64_t top = 10;  ///< at least 2
  /// Direction of the best values. Must be set unless `metric` has one or is the TuneConfig's metric.
  std::optional<Mode> mode = {};
  std::int64_t patience = 0;  ///< 0 or more

  std::unique_ptr<Stopper> make(const StopperSetting& setting) const;    ///< returns the stopper
  void check(const TunerOptions& options, Faults& faults) const;         ///< finds what is wrong
  Stopper::Traits traits() const { return {.metrics = {metric.name}}; }  ///< returns what it reads
};

namespace detail {
extern template class HeldOptionsOf<Stopper, StopperSetting, ExperimentPlateauStopper>;
inline const bool knows_experiment_plateau_stopper =
    HeldOptionsOf<Stopper, StopperSetting, ExperimentPlateauStopper>::known();
}  // namespace detail

}  // namespace cadre::tune
