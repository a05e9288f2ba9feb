#include "cadre/tune/stoppers/timeout_stopper.h"

#include <fmt/format.h>

#include <cmath>

#include "cadre/tune/tuner.h"

namespace cadre::tune {
namespace {

// The time is the controller's: Traits::timeout.
class Timeout final : public Stopper {};

}  // namespace

std::unique_ptr<Stopper> TimeoutStopper::make(const StopperSetting&) const { return std::make_unique<Timeout>(); }

void TimeoutStopper::check(const TunerOptions&, Faults&) const {}

template class detail::HeldOptionsOf<Stopper, StopperSetting, TimeoutStopper>;

}  // namespace cadre::tune
