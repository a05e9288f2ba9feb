#include "cadre/tune/result.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/json.h"
#include "cadre/error.h"
#include "store/experiment_store.h"

namespace cadre::tune {
namespace {

// Larger is better; nothing where the result has no finite number.
std::optional<double> score(const Metrics& metrics, const std::string& metric, Mode mode) {
  const Value* value = metrics.find(metric);
  if (value == nullptr || !value->is_number() || !std::isfinite(value->get<double>())) return std::nullopt;
  return mode == Mode::max ? value->get<double>() : -value->get<double>();
}

}  // namespace

std::string to_string(TrialStatus status) {
  switch (status) {
    case TrialStatus::pending:
      return "PENDING";
    case TrialStatus::running:
      return "RUNNING";
    case TrialStatus::paused:
      return "PAUSED";
    case TrialStatus::terminated:
      return "TERMINATED";
    case TrialStatus::error:
      return "ERROR";
  }
  return "?";
}

std::vector<Metrics> Result::metrics_history() const {
  std::vector<Metrics> history;
  for (const std::string& row : store::read_results(path.parent_path(), std::stoll(trial_id)))
    history.emplace_back(base::parse_json(row, "a result of trial " + trial_id).dict());
  return history;
}

Checkpoint Result::get_best_checkpoint(const std::string& metric, Mode mode) const {
  const std::pair<Checkpoint, Metrics>* best = nullptr;
  std::optional<double> best_score;
  for (const auto& candidate : best_checkpoints) {
    const std::optional<double> value = score(candidate.second, metric, mode);
    if (value && (!best_score || *value > *best_score)) {
      best = &candidate;
      best_score = value;
    }
  }
  if (best == nullptr)
    throw NotFound("trial " + trial_id + " has no checkpoint whose result has a number \"" + metric + "\"");
  return best->first;
}

const Result& ResultGrid::get_best_result(const std::string& metric, std::optional<Mode> mode) const {
  const std::string& name = metric.empty() ? metric_ : metric;
  if (name.empty()) throw InvalidArgument("get_best_result needs a metric: give it one, or set it in the TuneConfig");
  const Result* best = nullptr;
  std::optional<double> best_score;
  for (const Result& result : results_) {
    const std::optional<double> value = score(result.metrics, name, mode.value_or(mode_));
    if (value && (!best_score || *value > *best_score)) {
      best = &result;
      best_score = value;
    }
  }
  if (best == nullptr)
    throw NotFound("no trial of " + experiment_path_.string() + " has a finite number \"" + name +
                   "\" in its last result" + (num_errors() > 0 ? "; see errors() for the trials that failed" : ""));
  return *best;
}

std::vector<std::string> ResultGrid::errors() const {
  std::vector<std::string> errors;
  for (const Result& result : results_) {
    if (result.error) errors.push_back("trial " + result.trial_id + ": " + *result.error);
  }
  return errors;
}

std::size_t ResultGrid::num_errors() const {
  return static_cast<std::size_t>(std::ranges::count(results_, TrialStatus::error, &Result::status));
}

std::size_t ResultGrid::num_terminated() const {
  return static_cast<std::size_t>(std::ranges::count(results_, TrialStatus::terminated, &Result::status));
}

}  // namespace cadre::tune
