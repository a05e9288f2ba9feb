#include "tune/options/check_stop.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "control/option_checks.h"
#include "tune/held_options.h"

namespace cadre::tune {
namespace {

void check_thresholds(const Thresholds& thresholds, const std::string& experiments_metric, Faults& faults) {
  for (const auto& [metric, threshold] : thresholds) {
    faults.unless(!metric.empty(), "stop", "a criterion has no metric");
    const std::string name = "stop \"" + metric + "\"";
    faults.unless(!std::isnan(threshold.value), name, "the threshold is NaN and is never reached");
    faults.unless(threshold.mode || metric == experiments_metric, name,
                  fmt::format("{0:g} may be meant from below or from above: write tune::at_least({0:g}) or "
                              "tune::at_most({0:g})",
                              threshold.value));
  }
}

}  // namespace

void check_stop(const TunerOptions& options, Faults& faults) {
  const Stop& stop = options.run_config.stop;
  check_thresholds(stop.thresholds, options.tune_config.metric.name, faults);
  for (const AnyStopper& one : stop.stoppers) {
    faults.unless(!one.empty(), "stop", "a stopper is empty: leave it out");
    check_held(one, "stop", options, faults);
    if (one.empty()) continue;
    if (const std::optional<Seconds> timeout = one.held().traits().timeout)
      control::check_time_above_0(fmt::format("stop ({}) timeout", one.name()), *timeout, faults);
  }
}

}  // namespace cadre::tune
