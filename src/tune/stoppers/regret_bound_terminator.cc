#include "cadre/tune/stoppers/regret_bound_terminator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/overload.h"
#include "cadre/stored.h"
#include "cadre/tune/parameters.h"
#include "cadre/tune/tuner.h"
#include "control/objective.h"
#include "tune/stoppers/regret_bound.h"
#include "tune/stoppers/standard_deviation.h"

namespace cadre::tune {
namespace {

// Returns the standard error of the mean of scores; empty if they are not at least two finite numbers.
std::optional<double> cross_validation_error(const Value* scores) {
  if (scores == nullptr || !scores->is_list() || scores->items().size() < 2) return std::nullopt;
  std::vector<double> numbers;
  for (const Value& score : scores->items()) {
    if (!score.is_number()) return std::nullopt;
    numbers.push_back(score.get<double>());
  }
  const auto k = static_cast<double>(numbers.size());
  const double error = standard_deviation(numbers) * std::sqrt(1 / k + 1 / (k - 1));
  return std::isfinite(error) ? std::optional(error) : std::nullopt;
}

class Terminator final : public Stopper {
 public:
  Terminator(RegretBoundTerminator options, const StopperSetting& setting)
      : options_(std::move(options)),
        parameters_(setting.space),
        evaluator_(parameters_, options_.top_trials_ratio, options_.min_n_trials, setting.seed) {}

  void on_trial_end(const TrialView& trial) override;
  std::optional<std::string> stop_all() const override {
    if (!answer_) answer_ = answer();
    return *answer_;
  }
  Value save() const override { return to_stored(ended_); }
  void load(const Value& state) override;

 private:
  // A trial that counts.
  struct Ended {
    Point point = {};
    double loss = 0;
    std::optional<double> error = {};      // of its evaluation, if its scores tell
    std::optional<TrialIndex> trial = {};  // empty in snapshots of earlier versions
  };

  std::optional<std::string> answer() const;
  std::optional<double> error() const;
  double bound(std::size_t first, std::size_t count) const;
  std::optional<double> median_error(const MedianError& options) const;

  RegretBoundTerminator options_;
  Parameters parameters_;
  RegretBoundEvaluator evaluator_;
  std::vector<Ended> ended_ = {};                                            // in the order of their last ends
  mutable std::optional<std::optional<std::string>> answer_ = std::nullopt;  // to stop_all() in this state
  mutable std::optional<double> median_error_ = {};
};

void Terminator::on_trial_end(const TrialView& trial) {
  if (trial.status() != TrialStatus::terminated) return;
  const std::optional<double> value = control::finite_number(trial.last_result(), options_.metric.name);
  std::optional<Point> point = parameters_.point_of(trial.config());
  // A trial may have gone on after its end, with an extension.
  if (std::erase_if(ended_, [&](const Ended& one) { return one.trial == trial.index(); }) > 0) median_error_.reset();
  answer_.reset();
  if (!value || !point) return;
  const auto* scores = std::get_if<CrossValidationError>(&options_.error);
  ended_.push_back(
      {.point = *std::move(point),
       .loss = options_.mode == Mode::max ? -*value : *value,
       .error = scores == nullptr ? std::nullopt : cross_validation_error(trial.last_result().find(scores->scores)),
       .trial = trial.index()});
}

void Terminator::load(const Value& state) {
  auto ended = from_value<std::vector<Ended>>(state);
  const auto is_sound = [&](const Ended& one) { return one.point.size() == parameters_.size(); };
  if (!std::ranges::all_of(ended, is_sound)) throw InvalidArgument("the state is one of another search space");
  ended_ = std::move(ended);
  answer_.reset();
  median_error_.reset();
}

std::optional<std::string> Terminator::answer() const {
  if (std::ssize(ended_) < options_.min_n_trials) return std::nullopt;
  const std::optional<double> allowed = error();
  if (!allowed) return std::nullopt;
  const double regret = bound(0, ended_.size());
  if (!(regret < *allowed)) return std::nullopt;
  return fmt::format("the regret of the best trial is at most {:.4g}, below the error of an evaluation, {:.4g}", regret,
                     *allowed);
}

// Returns the error of an evaluation; empty: it is not known yet.
std::optional<double> Terminator::error() const {
  return std::visit(base::Overload{[](const StaticError& one) { return std::optional(one.constant); },
                                   [&](const CrossValidationError&) {
                                     return std::ranges::min_element(ended_, {}, &Ended::loss)->error;
                                   },
                                   [&](const MedianError& one) { return median_error(one); }},
                    options_.error);
}

double Terminator::bound(std::size_t first, std::size_t count) const {
  std::vector<EvaluatedPoint> evaluations;
  for (std::size_t i = first; i < first + count; ++i) evaluations.push_back({ended_[i].point, ended_[i].loss});
  return evaluator_(evaluations).bound;
}

std::optional<double> Terminator::median_error(const MedianError& options) const {
  if (std::ssize(ended_) < options.warm_up_trials + options.n_initial_trials) return std::nullopt;
  if (median_error_) return median_error_;
  std::vector<double> bounds;
  for (std::int64_t count = 1; count <= options.n_initial_trials; ++count)
    bounds.push_back(bound(static_cast<std::size_t>(options.warm_up_trials), static_cast<std::size_t>(count)));
  const auto middle = bounds.begin() + std::ssize(bounds) / 2;
  std::ranges::nth_element(bounds, middle);
  return median_error_ = *middle * options.threshold_ratio;
}

void check(const StaticError& error, Faults& faults) {
  faults.unless(
      std::isfinite(error.constant) && error.constant > 0, "error constant",
      fmt::format("it is {:g}; it must be above 0: the difference of the metric that does not matter", error.constant));
}

void check(const CrossValidationError& error, Faults& faults) {
  faults.unless(!error.scores.empty(), "error scores", "say which metric has the list of scores");
}

void check(const MedianError& error, Faults& faults) {
  faults.unless(error.warm_up_trials >= 0, "error warm_up_trials",
                fmt::format("it is {}; it must be 0 or more", error.warm_up_trials));
  faults.unless(error.n_initial_trials >= 1, "error n_initial_trials",
                fmt::format("it is {}; it must be at least 1", error.n_initial_trials));
  faults.unless(std::isfinite(error.threshold_ratio) && error.threshold_ratio > 0, "error threshold_ratio",
                fmt::format("it is {:g}; it must be above 0", error.threshold_ratio));
}

}  // namespace

std::unique_ptr<Stopper> RegretBoundTerminator::make(const StopperSetting& setting) const {
  return std::make_unique<Terminator>(*this, setting);
}

void RegretBoundTerminator::check(const TunerOptions& options, Faults& faults) const {
  const TuneConfig& tune = options.tune_config;
  const std::string fault = control::fault_of(metric, mode, "its mode", {tune.metric.name, tune.mode});
  faults.unless(!metric.name.empty(), "metric", "it has none, and the TuneConfig has none");
  faults.unless(fault.empty() || metric.name.empty(), "metric", fault);
  std::visit([&](const auto& one) { tune::check(one, faults); }, error);
  faults.unless(top_trials_ratio > 0 && top_trials_ratio <= 1, "top_trials_ratio",
                fmt::format("it is {:g}; it must be above 0 and at most 1", top_trials_ratio));
  faults.unless(min_n_trials >= 2, "min_n_trials", fmt::format("it is {}; it must be at least 2", min_n_trials));
  faults.unless(tune.scheduler.empty() || !tune.scheduler.held().traits().exploits, "scheduler",
                "it models which configs lead to which results, and this scheduler changes configs during training: "
                "use ExperimentPlateauStopper with it");
  try {
    const Parameters parameters(options.param_space);
    faults.unless(parameters.size() > 0, "param_space", "it has no domain that configs differ in");
  } catch (const InvalidArgument& fault_of_space) {
    faults.add("param_space", fault_of_space.what());
  }
}

Stopper::Traits RegretBoundTerminator::traits() const {
  Stopper::Traits traits{.metrics = {metric.name}};
  if (const auto* scores = std::get_if<CrossValidationError>(&error)) traits.metrics.push_back(scores->scores);
  return traits;
}

template class detail::HeldOptionsOf<Stopper, StopperSetting, RegretBoundTerminator>;

}  // namespace cadre::tune
