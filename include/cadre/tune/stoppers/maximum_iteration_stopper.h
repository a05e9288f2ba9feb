/// \file
/// Ends trials after a number of results.
#pragma once

#include <cstdint>
#include <memory>

#include "cadre/tune/stopper.h"

namespace cadre::tune {

/// Ends a trial after this many results of its own, regardless of the trial from which it continued.
struct MaximumIterationStopper {
  std::int64_t max_iter = 0;  ///< at least 1

  std::unique_ptr<Stopper> make(const StopperSetting& setting) const;  ///< returns the stopper
  void check(const TunerOptions& options, Faults& faults) const;       ///< finds what is wrong
};

namespace detail {
extern template class HeldOptionsOf<Stopper, StopperSetting, MaximumIterationStopper>;
inline const bool knows_maximum_iteration_stopper =
    HeldOptionsOf<Stopper, StopperSetting, MaximumIterationStopper>::known();
}  // namespace detail

}  // namespace cadre::tune
