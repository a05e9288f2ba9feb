#include "tune/options/check_stop.h"

#include <fmt/format.h>

#include <cmath>

#include "control/objective.h"
#include "tune/functions.h"

namespace cadre::tune {
namespace {

void check_direction(const auto& stopper, const std::string& name, const Objective& objective, Faults& faults) {
  const std::string fault = control::fault_of(stopper.metric, stopper.mode, "its mode", objective);
  faults.unless(fault.empty() || stopper.metric.name.empty(), name, fault);
}

void check(const MaximumIterationStopper& stopper, const Objective&, Faults& faults) {
  faults.unless(stopper.max_iter >= 1, "stop MaximumIterationStopper max_iter",
                fmt::format("it is {}; a trial has at least 1 result", stopper.max_iter));
}

void check(const TrialPlateauStopper& stopper, const Objective& objective, Faults& faults) {
  const std::string name = "stop TrialPlateauStopper";
  faults.unless(!stopper.metric.name.empty(), name, "it has no metric, and the TuneConfig has none");
  if (stopper.mode) check_direction(stopper, name, objective, faults);
  faults.unless(std::isfinite(stopper.std) && stopper.std > 0, name + " std",
                fmt::format("it is {:g}; it must be above 0", stopper.std));
  faults.unless(stopper.num_results >= 1, name + " num_results",
                fmt::format("it is {}; it must be at least 1", stopper.num_results));
  faults.unless(stopper.grace_period >= 0, name + " grace_period",
                fmt::format("it is {}; it must be 0 or more", stopper.grace_period));
  faults.unless(!stopper.metric_threshold || stopper.mode, name + " mode",
                "a metric_threshold needs one: min for a metric that falls, max for one that rises");
  faults.unless(!std::isnan(stopper.metric_threshold.value_or(0)), name + " metric_threshold",
                "it is NaN and is never reached");
}

void check(const ExperimentPlateauStopper& stopper, const Objective& objective, Faults& faults) {
  const std::string name = "stop ExperimentPlateauStopper";
  faults.unless(!stopper.metric.name.empty(), name, "it has no metric, and the TuneConfig has none");
  check_direction(stopper, name, objective, faults);
  faults.unless(std::isfinite(stopper.std) && stopper.std >= 0, name + " std",
                fmt::format("it is {:g}; it must be 0 or more", stopper.std));
  faults.unless(stopper.top >= 2, name + " top", fmt::format("it is {}; it must be at least 2", stopper.top));
  faults.unless(stopper.patience >= 0, name + " patience",
                fmt::format("it is {}; it must be 0 or more", stopper.patience));
}

void check(const TimeoutStopper& stopper, const Objective&, Faults& faults) {
  const double timeout = stopper.timeout.count();
  faults.unless(std::isfinite(timeout) && timeout > 0, "stop TimeoutStopper timeout",
                fmt::format("it is {:g} s; it must be above 0", timeout));
}

void check(const FunctionStopper& stopper, const Objective&, Faults& faults) {
  check_registered(stop_functions(), stopper.function, "stop_function", "stop FunctionStopper", faults);
}

}  // namespace

void check_stop(const Stop& stop, const Objective& objective, Faults& faults) {
  for (const auto& [metric, threshold] : stop.thresholds) {
    faults.unless(!metric.empty(), "stop", "a criterion has no metric");
    const std::string name = "stop \"" + metric + "\"";
    faults.unless(!std::isnan(threshold.value), name, "the threshold is NaN and is never reached");
    faults.unless(threshold.mode || metric == objective.name, name,
                  fmt::format("{0:g} may be meant from below or from above: write tune::at_least({0:g}) or "
                              "tune::at_most({0:g})",
                              threshold.value));
  }
  for (const Stopper& stopper : stop.stoppers)
    std::visit([&](const auto& one) { check(one, objective, faults); }, stopper);
}

}  // namespace cadre::tune
