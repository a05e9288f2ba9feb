// The thresholds of a Stop as a stopper.
#pragma once

#include <memory>

#include "cadre/tune/stop.h"

namespace cadre::tune {

// Returns true if the result reaches one of the thresholds, which all have a direction.
bool reaches(const Metrics& result, const Thresholds& thresholds);

// Returns a stopper that ends a trial whose result reaches one of the thresholds, which all have a direction.
std::unique_ptr<Stopper> make_threshold_stopper(Thresholds thresholds);

}  // namespace cadre::tune
