#include "cadre/tune/stoppers/trial_plateau_stopper.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "cadre/stored.h"
#include "cadre/tune/tuner.h"
#include "control/objective.h"
#include "tune/stoppers/standard_deviation.h"

namespace cadre::tune {
namespace {

class TrialPlateau final : public Stopper {
 public:
  explicit TrialPlateau(TrialPlateauStopper options) : options_(std::move(options)) {}

  bool on_result(const TrialView& trial, const Metrics& result) override {
    const std::optional<double> value = control::finite_number(result, options_.metric.name);
    if (!value) return false;
    Seen& seen = seen_[trial.index()];
    ++seen.results;
    seen.last.push_back(*value);
    if (std::ssize(seen.last) > options_.num_results) seen.last.erase(seen.last.begin());
    const bool enough = seen.results >= options_.grace_period && std::ssize(seen.last) == options_.num_results;
    return enough && has_come_far(*value) && standard_deviation(seen.last) < options_.std;
  }
  void on_trial_end(const TrialView& trial) override { seen_.erase(trial.index()); }
  Value save() const override { return to_stored(seen_); }
  void load(const Value& state) override { seen_ = from_value<SeenByTrial>(state); }

 private:
  struct Seen {
    std::int64_t results = 0;
    std::vector<double> last = {};
  };
  using SeenByTrial = std::map<TrialIndex, Seen>;

  bool has_come_far(double value) const {
    if (!options_.metric_threshold) return true;
    return options_.mode == Mode::min ? value <= *options_.metric_threshold : value >= *options_.metric_threshold;
  }

  TrialPlateauStopper options_;
  SeenByTrial seen_ = {};
};

}  // namespace

std::unique_ptr<Stopper> TrialPlateauStopper::make(const StopperSetting&) const {
  return std::make_unique<TrialPlateau>(*this);
}

void TrialPlateauStopper::check(const TunerOptions& options, Faults& faults) const {
  const TuneConfig& tune = options.tune_config;
  faults.unless(!metric.name.empty(), "metric", "it has none, and the TuneConfig has none");
  if (mode && !metric.name.empty()) {
    const std::string fault = control::fault_of(metric, mode, "its mode", {tune.metric.name, tune.mode});
    faults.unless(fault.empty(), "metric", fault);
  }
  faults.unless(std::isfinite(this->std) && this->std > 0, "std",
                fmt::format("it is {:g}; it must be above 0", this->std));
  faults.unless(num_results >= 1, "num_results", fmt::format("it is {}; it must be at least 1", num_results));
  faults.unless(grace_period >= 0, "grace_period", fmt::format("it is {}; it must be 0 or more", grace_period));
  faults.unless(!metric_threshold || mode, "mode",
                "a metric_threshold needs one: min for a metric that falls, max for one that rises");
  faults.unless(!std::isnan(metric_threshold.value_or(0)), "metric_threshold", "it is NaN and is never reached");
}

template class detail::HeldOptionsOf<Stopper, StopperSetting, TrialPlateauStopper>;

}  // namespace cadre::tune
