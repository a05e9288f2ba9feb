#include "tune/stoppers/stoppers.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "base/overload.h"
#include "cadre/error.h"
#include "cadre/stored.h"
#include "tune/functions.h"

namespace cadre::tune {
namespace {

using Verdict = ResultStopper::Verdict;

// Returns the standard deviation of a population, not of a sample, like numpy.std.
double standard_deviation(const std::vector<double>& values) {
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  double variance = 0;
  for (const double value : values) variance += (value - mean) * (value - mean) / static_cast<double>(values.size());
  return std::sqrt(variance);
}

std::optional<double> finite_number(const Metrics& result, const std::string& metric) {
  std::optional<double> number = result.number(metric);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

class ThresholdsReached final : public ResultStopper {
 public:
  explicit ThresholdsReached(Thresholds thresholds) : thresholds_(std::move(thresholds)) {}

  Verdict on_result(const Trial&, const Metrics& result) override {
    for (const auto& [metric, threshold] : thresholds_) {
      const std::optional<double> value = result.number(metric);
      if (value && (threshold.mode == Mode::min ? *value <= threshold.value : *value >= threshold.value))
        return Verdict::stop_trial;
    }
    return Verdict::go_on;
  }

 private:
  Thresholds thresholds_;
};

class IterationsCounted final : public ResultStopper {
 public:
  explicit IterationsCounted(MaximumIterationStopper settings) : settings_(settings) {}

  Verdict on_result(const Trial& trial, const Metrics&) override {
    return ++counts_[trial.index] >= settings_.max_iter ? Verdict::stop_trial : Verdict::go_on;
  }
  void forget(TrialIndex trial) override { counts_.erase(trial); }
  Value save() const override { return cadre::to_stored(counts_); }
  void load(const Value& state) override { counts_ = cadre::from_value<Counts>(state); }

 private:
  using Counts = std::map<TrialIndex, std::int64_t>;
  MaximumIterationStopper settings_;
  Counts counts_;
};

class TrialPlateau final : public ResultStopper {
 public:
  explicit TrialPlateau(TrialPlateauStopper settings) : settings_(std::move(settings)) {}

  Verdict on_result(const Trial& trial, const Metrics& result) override {
    const std::optional<double> value = finite_number(result, settings_.metric.name);
    if (!value) return Verdict::go_on;
    Seen& seen = seen_[trial.index];
    ++seen.results;
    seen.last.push_back(*value);
    if (std::ssize(seen.last) > settings_.num_results) seen.last.erase(seen.last.begin());
    const bool enough = seen.results >= settings_.grace_period && std::ssize(seen.last) == settings_.num_results;
    if (!enough || !has_come_far(*value)) return Verdict::go_on;
    return standard_deviation(seen.last) < settings_.std ? Verdict::stop_trial : Verdict::go_on;
  }
  void forget(TrialIndex trial) override { seen_.erase(trial); }
  Value save() const override { return cadre::to_stored(seen_); }
  void load(const Value& state) override { seen_ = cadre::from_value<SeenByTrial>(state); }

 private:
  struct Seen {
    std::int64_t results = 0;
    std::vector<double> last = {};
  };
  using SeenByTrial = std::map<TrialIndex, Seen>;

  bool has_come_far(double value) const {
    if (!settings_.metric_threshold) return true;
    return settings_.mode == Mode::min ? value <= *settings_.metric_threshold : value >= *settings_.metric_threshold;
  }

  TrialPlateauStopper settings_;
  SeenByTrial seen_;
};

class ExperimentPlateau final : public ResultStopper {
 public:
  explicit ExperimentPlateau(ExperimentPlateauStopper settings) : settings_(std::move(settings)) {}

  Verdict on_result(const Trial&, const Metrics& result) override {
    const std::optional<double> value = finite_number(result, settings_.metric.name);
    if (!value) return Verdict::go_on;
    const auto better = [this](double a, double b) { return settings_.mode == Mode::min ? a < b : a > b; };
    state_.best.insert(std::ranges::upper_bound(state_.best, *value, better), *value);
    if (std::ssize(state_.best) > settings_.top) state_.best.pop_back();
    const bool plateau = std::ssize(state_.best) == settings_.top && standard_deviation(state_.best) <= settings_.std;
    state_.results = plateau ? state_.results + 1 : 0;
    return plateau && state_.results >= settings_.patience ? Verdict::stop_all : Verdict::go_on;
  }
  Value save() const override { return cadre::to_stored(state_); }
  void load(const Value& state) override { state_ = cadre::from_value<State>(state); }

 private:
  ExperimentPlateauStopper settings_;
  struct State {
    std::vector<double> best = {};  // best first
    std::int64_t results = 0;       // on the plateau
  };
  State state_;
};

}  // namespace

Stoppers::Stoppers(const Stop& stop) {
  stoppers_.push_back(std::make_unique<ThresholdsReached>(stop.thresholds));
  for (const auto& [metric, threshold] : stop.thresholds) metrics_.push_back(metric);
  const auto watch = [this](const auto& settings) { metrics_.push_back(settings.metric.name); };
  const base::Overload add{
      [&](const MaximumIterationStopper& one) { stoppers_.push_back(std::make_unique<IterationsCounted>(one)); },
      [&](const TrialPlateauStopper& one) {
        watch(one);
        stoppers_.push_back(std::make_unique<TrialPlateau>(one));
      },
      [&](const ExperimentPlateauStopper& one) {
        watch(one);
        stoppers_.push_back(std::make_unique<ExperimentPlateau>(one));
      },
      [&](const TimeoutStopper& one) { timeout_ = timeout_ ? std::min(*timeout_, one.timeout) : one.timeout; },
      [&](const FunctionStopper& one) { functions_.push_back(*stop_functions().find(one.function)); }};
  for (const Stopper& one : stop.stoppers) std::visit(add, one);
}

Verdict Stoppers::on_result(const Trial& trial, const Metrics& result) {
  Verdict strongest = Verdict::go_on;
  for (const auto& stopper : stoppers_) strongest = std::max(strongest, stopper->on_result(trial, result));
  return strongest;
}

bool Stoppers::ask_functions(const Trial& trial, const Metrics& result) const {
  bool ends = false;
  for (const detail::StopPointer function : functions_) ends = function(trial.id, result) || ends;
  return ends;
}

void Stoppers::forget(TrialIndex trial) {
  for (const auto& stopper : stoppers_) stopper->forget(trial);
}

Value Stoppers::save() const {
  List states;
  for (const auto& stopper : stoppers_) states.push_back(stopper->save());
  return states;
}

void Stoppers::load(const Value& state) {
  const List& states = state.items();
  if (states.size() != stoppers_.size()) throw InvalidArgument("the state is not that of these stoppers");
  for (std::size_t i = 0; i < states.size(); ++i) stoppers_[i]->load(states[i]);
}

}  // namespace cadre::tune
