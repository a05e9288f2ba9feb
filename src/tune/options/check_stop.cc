#include "tune/options/check_stop.h"

#include <fmt/format.h>

#include <cmath>

#include "base/overload.h"
#include "tune/functions.h"

namespace cadre::tune {
namespace {

void check_metric(const std::string& metric, const std::string& stopper, Faults& faults) {
  faults.unless(!metric.empty(), stopper, "it has no metric");
}

void check(const MaximumIterationStopper& stopper, Faults& faults) {
  faults.unless(stopper.max_iter >= 1, "stop MaximumIterationStopper max_iter",
                fmt::format("it is {}; a trial has at least 1 result", stopper.max_iter));
}

void check(const TrialPlateauStopper& stopper, Faults& faults) {
  const std::string name = "stop TrialPlateauStopper";
  check_metric(stopper.metric, name, faults);
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

void check(const ExperimentPlateauStopper& stopper, Faults& faults) {
  const std::string name = "stop ExperimentPlateauStopper";
  check_metric(stopper.metric, name, faults);
  faults.unless(std::isfinite(stopper.std) && stopper.std >= 0, name + " std",
                fmt::format("it is {:g}; it must be 0 or more", stopper.std));
  faults.unless(stopper.top >= 2, name + " top", fmt::format("it is {}; it must be at least 2", stopper.top));
  faults.unless(stopper.patience >= 0, name + " patience",
                fmt::format("it is {}; it must be 0 or more", stopper.patience));
}

void check(const TimeoutStopper& stopper, Faults& faults) {
  const double timeout = stopper.timeout.count();
  faults.unless(std::isfinite(timeout) && timeout > 0, "stop TimeoutStopper timeout",
                fmt::format("it is {:g} s; it must be above 0", timeout));
}

void check(const FunctionStopper& stopper, Faults& faults) {
  check_registered(stop_functions(), stopper.function, "stop_function", "stop FunctionStopper", faults);
}

}  // namespace

void check_stop(const Stop& stop, Faults& faults) {
  for (const auto& [metric, threshold] : stop.thresholds) {
    faults.unless(!metric.empty(), "stop", "a criterion has no metric");
    faults.unless(!std::isnan(threshold.value), "stop \"" + metric + "\"", "the threshold is NaN and is never reached");
  }
  for (const Stopper& stopper : stop.stoppers) std::visit([&](const auto& one) { check(one, faults); }, stopper);
}

}  // namespace cadre::tune
