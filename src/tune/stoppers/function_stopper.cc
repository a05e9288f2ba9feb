#include "cadre/tune/stoppers/function_stopper.h"

#include "cadre/tune/tuner.h"
#include "tune/functions.h"

namespace cadre::tune {
namespace {

class FunctionCaller final : public Stopper {
 public:
  explicit FunctionCaller(detail::StopPointer function) : function_(function) {}

  bool on_result(const TrialView& trial, const Metrics& result) override { return function_(trial.id(), result); }

 private:
  detail::StopPointer function_;
};

}  // namespace

std::unique_ptr<Stopper> FunctionStopper::make(const StopperSetting&) const {
  return std::make_unique<FunctionCaller>(*stop_functions().find(function));
}

void FunctionStopper::check(const TunerOptions&, Faults& faults) const {
  check_registered(stop_functions(), function, "function", faults);
}

template class detail::HeldOptionsOf<Stopper, StopperSetting, FunctionStopper>;

}  // namespace cadre::tune
