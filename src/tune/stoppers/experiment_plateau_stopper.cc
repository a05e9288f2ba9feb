#include "cadre/tune/stoppers/experiment_plateau_stopper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "cadre/stored.h"
#include "cadre/tune/tuner.h"
#include "control/objective.h"
#include "tune/stoppers/standard_deviation.h"

namespace cadre::tune {
namespace {

class ExperimentPlateau final : public Stopper {
 public:
  explicit ExperimentPlateau(ExperimentPlateauStopper options) : options_(std::move(options)) {}

  bool on_result(const TrialView&, const Metrics& result) override {
    const std::optional<double> value = control::finite_number(result, options_.metric.name);
    if (!value) return false;
    const auto better = [this](double a, double b) { return options_.mode == Mode::min ? a < b : a > b; };
    state_.best.insert(std::ranges::upper_bound(state_.best, *value, better), *value);
    if (std::ssize(state_.best) > options_.top) state_.best.pop_back();
    const bool plateau = std::ssize(state_.best) == options_.top && standard_deviation(state_.best) <= options_.std;
    state_.results = plateau ? state_.results + 1 : 0;
    return false;
  }
  std::optional<std::string> stop_all() const override {
    if (state_.results < std::max<std::int64_t>(options_.patience, 1)) return std::nullopt;
    return fmt::format("the best {} results of the experiment do not get better any more", options_.top);
  }
  Value save() const override { return to_stored(state_); }
  void load(const Value& state) override { state_ = from_value<State>(state); }

 private:
  struct State {
    std::vector<double> best = {};  // best first
    std::int64_t results = 0;       // on the plateau
  };
  ExperimentPlateauStopper options_;
  State state_ = {};
};

}  // namespace

std::unique_ptr<Stopper> ExperimentPlateauStopper::make(const StopperSetting&) const {
  return std::make_unique<ExperimentPlateau>(*this);
}

void ExperimentPlateauStopper::check(const TunerOptions& options, Faults& faults) const {
  const TuneConfig& tune = options.tune_config;
  const std::string fault = control::fault_of(metric, mode, "its mode", {tune.metric.name, tune.mode});
  faults.unless(!metric.name.empty(), "metric", "it has none, and the TuneConfig has none");
  faults.unless(fault.empty() || metric.name.empty(), "metric", fault);
  faults.unless(std::isfinite(this->std) && this->std >= 0, "std",
                fmt::format("it is {:g}; it must be 0 or more", this->std));
  faults.unless(top >= 2, "top", fmt::format("it is {}; it must be at least 2", top));
  faults.unless(patience >= 0, "patience", fmt::format("it is {}; it must be 0 or more", patience));
}

template class detail::HeldOptionsOf<Stopper, StopperSetting, ExperimentPlateauStopper>;

}  // namespace cadre::tune
