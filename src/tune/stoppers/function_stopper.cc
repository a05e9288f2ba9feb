#include "cadre/tune/stoppers/function_stopper.h"

#include <optional>
#include <string>
#include <utility>

#include "cadre/tune/tuner.h"
#include "tune/functions.h"

namespace cadre::tune {
namespace {

class FunctionCaller final : public Stopper {
 public:
  explicit FunctionCaller(FunctionStopper function) : function_(std::move(function)) {}

  bool on_result(const TrialView& trial, const Metrics& result) override { return call(function_, trial.id(), result); }
  std::optional<std::string> stop_all() const override {
    return stops_all(function_) ? std::optional(function_.function + " has ended the experiment") : std::nullopt;
  }

 private:
  FunctionStopper function_;
};

}  // namespace

std::unique_ptr<Stopper> FunctionStopper::make(const StopperSetting&) const {
  return std::make_unique<FunctionCaller>(*this);
}

void FunctionStopper::check(const TunerOptions&, Faults& faults) const {
  check_registered(stop_functions(), *this, "function", faults);
}

template class detail::HeldOptionsOf<Stopper, StopperSetting, FunctionStopper>;

}  // namespace cadre::tune
