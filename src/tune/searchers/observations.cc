#include "tune/searchers/observations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tune/trial.h"

namespace cadre::tune {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

void check_objectives(const std::vector<Objective>& metrics, Faults& faults) {
  for (const Objective& metric : metrics) {
    faults.unless(!metric.name.empty(), "metrics", "one of them has no name");
    faults.unless(metric.mode.has_value(), "metrics",
                  fmt::format("\"{0}\" has no direction: write tune::minimize(\"{0}\"), or maximize", metric.name));
    faults.unless(std::ranges::count(metrics, metric.name, &Objective::name) == 1, "metrics",
                  fmt::format("\"{}\" is there twice", metric.name));
  }
}

void check_constraints(const std::vector<Constraint>& constraints, Faults& faults) {
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    const std::string name = fmt::format("constraints[{}]", i);
    faults.unless(!constraints[i].metric.empty(), name, "it has no metric; say which one has the limit");
    faults.unless(std::isfinite(constraints[i].at_most), name,
                  fmt::format("its at_most is {}; it must be a finite number", constraints[i].at_most));
  }
}

Observations::Observations(const SearcherSetting& setting, std::vector<Objective> objectives,
                           std::vector<Constraint> constraints)
    : parameters_(setting.space), objectives_(std::move(objectives)), constraints_(std::move(constraints)) {
  if (objectives_.empty()) objectives_ = {setting.metric};
}

void Observations::on_trial_add(TrialIndex trial, const Config& config) {
  if (std::optional<Point> point = parameters_.point_of(config)) open_[trial] = *std::move(point);
}

void Observations::on_trial_end(TrialIndex trial, TrialStatus status, const Metrics& last_result) {
  auto open = open_.extract(trial);
  if (open.empty() || status == TrialStatus::error) return;
  Observation one{.trial = trial,
                  .point = std::move(open.mapped()),
                  .stopped = status == TrialStatus::stopped,
                  .iteration = training_iteration(last_result)};
  for (const Objective& objective : objectives_) {
    const std::optional<double> value = last_result.number(objective.name);
    if (!value) return;
    one.losses.push_back(std::isnan(*value) ? kInfinity : objective.mode == Mode::max ? -*value : *value);
  }
  for (const Constraint& constraint : constraints_) {
    const double value = last_result.number(constraint.metric).value_or(kInfinity);
    one.violation += std::isnan(value) ? kInfinity : std::max(0.0, value - constraint.at_most);
  }
  ended_.insert(std::ranges::upper_bound(ended_, trial, {}, &Observation::trial), std::move(one));
}

}  // namespace cadre::tune
