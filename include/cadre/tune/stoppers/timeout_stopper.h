/// \file
/// Ends an experiment after a time.
#pragma once

#include <memory>

#include "cadre/tune/stopper.h"

namespace cadre::tune {

/// Ends all trials when the experiment has run for this time: the same as TuneConfig::time_budget.
struct TimeoutStopper {
  Seconds timeout = {};  ///< above 0; running time over all sessions

  std::unique_ptr<Stopper> make(const StopperSetting& setting) const;  ///< returns the stopper
  void check(const TunerOptions& options, Faults& faults) const;       ///< finds what is wrong
  Stopper::Traits traits() const { return {.timeout = timeout}; }      ///< returns the time
};

namespace detail {
extern template class HeldOptionsOf<Stopper, StopperSetting, TimeoutStopper>;
inline const bool knows_timeout_stopper = HeldOptionsOf<Stopper, StopperSetting, TimeoutStopper>::known();
}  // namespace detail

}  // namespace cadre::tune
