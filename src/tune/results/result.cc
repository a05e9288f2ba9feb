#include "cadre/tune/result.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "base/json.h"
#include "cadre/error.h"
#include "control/objective.h"
#include "loggers/flat_row.h"
#include "store/experiment_reader.h"
#include "tune/result_keys.h"
#include "tune/results/result_rows.h"
#include "tune/searchers/pareto.h"

namespace cadre::tune {
namespace {

using store::ExperimentReader;

Metrics read_metrics(ExperimentReader& reader, std::int64_t result, const std::string& trial_id) {
  return Metrics(base::parse_json(reader.metrics(result), "a result of trial " + trial_id).dict());
}

double mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double in_scope(std::span<const double> values, Scope scope) {
  const auto last = [&](std::size_t count) { return values.last(std::min(count, values.size())); };
  switch (scope) {
    case Scope::last:
      return values.back();
    case Scope::avg:
      return mean(values);
    case Scope::min:
      return std::ranges::min(values);
    case Scope::max:
      return std::ranges::max(values);
    case Scope::last_5_avg:
      return mean(last(5));
    case Scope::last_10_avg:
      return mean(last(10));
  }
  return values.back();
}

// Lists the numbers that some trial has reported, for an error about a metric that none has.
std::string reported_instead(const std::vector<Result>& results) {
  for (const Result& result : results) {
    const std::vector<std::string> numbers = number_paths(result.metrics);
    if (!numbers.empty())
      return fmt::format("; the last result of trial {} has: {}", result.trial_id, fmt::join(numbers, ", "));
  }
  return "";
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
    case TrialStatus::stopped:
      return "STOPPED";
    case TrialStatus::error:
      return "ERROR";
  }
  return "?";
}

std::string to_string(ExperimentState state) {
  switch (state) {
    case ExperimentState::running:
      return "running";
    case ExperimentState::finished:
      return "finished";
    case ExperimentState::interrupted:
      return "interrupted";
  }
  return "?";
}

std::size_t Result::num_results() const { return rows == nullptr ? 0 : rows->own.size() + rows->results.size(); }

std::vector<Metrics> Result::metrics_history() const {
  std::vector<Metrics> history;
  if (num_results() == 0) return history;
  if (rows->own.empty()) return rows->results;
  ExperimentReader reader(path.parent_path(), ExperimentReader::Check::rows);
  for (const std::int64_t result : rows->own) history.push_back(read_metrics(reader, result, trial_id));
  return history;
}

const Config& Result::config_at(std::size_t index) const {
  const auto later = std::ranges::upper_bound(exploits, index, {}, &ExploitRecord::first_result);
  return later == exploits.begin() ? drawn_config : std::prev(later)->config;
}

std::vector<Value> Result::column_values(std::string_view name) const {
  constexpr std::string_view prefix = "config/";
  std::vector<Value> values;
  bool is_known = false;
  const std::vector<Metrics> history = metrics_history();
  for (std::size_t i = 0; i < history.size(); ++i) {
    const Value* value = history[i].find(name);
    if (value == nullptr && name.starts_with(prefix)) value = config_at(i).find(name.substr(prefix.size()));
    is_known |= value != nullptr;
    values.push_back(value == nullptr ? Value() : *value);
  }
  if (is_known || history.empty()) return values;
  std::vector<std::string> names;
  for (const auto& [key, value] : loggers::flatten(history.back().dict())) names.push_back(key);
  for (const auto& [key, value] : loggers::flatten({{"config", config.value()}})) names.push_back(key);
  throw NotFound(fmt::format("no result of trial {} has a column \"{}\"; the last one has: {}", trial_id, name,
                             fmt::join(names, ", ")));
}

void Result::refuse_in_column(std::string_view name, std::size_t index, const char* reason) const {
  throw InvalidArgument(fmt::format("column \"{}\" of trial {}, result {}: {}", name, trial_id, index, reason));
}

void Result::lacks_in_column(std::string_view name, std::size_t index) const {
  throw NotFound(
      fmt::format("column \"{}\" of trial {}: result {} lacks it; ask for a std::optional, as in "
                  "column<std::optional<std::int64_t>>(\"{}\")",
                  name, trial_id, index, name));
}

Checkpoint Result::get_best_checkpoint(const Objective& objective, std::optional<Mode> direction) const {
  const auto [metric, mode] = control::direction_of(objective, direction);
  std::vector<std::optional<double>> values;
  for (const auto& best : best_checkpoints) values.push_back(control::finite_number(best.second, metric));
  const std::optional<std::size_t> index = control::index_of_best(values, mode);
  if (!index) throw NotFound("trial " + trial_id + " has no checkpoint whose result has a number \"" + metric + "\"");
  return best_checkpoints[*index].first;
}

ResultGrid::ResultGrid(std::filesystem::path experiment_path, std::vector<Result> results, const Objective& metric)
    : experiment_path_(std::move(experiment_path)), results_(std::move(results)) {
  summary_.name = experiment_path_.filename();
  summary_.metric = metric.name;
  summary_.mode = metric.mode;
}

ResultGrid::ResultGrid(std::filesystem::path experiment_path, std::vector<Result> results, ExperimentSummary summary)
    : experiment_path_(std::move(experiment_path)), results_(std::move(results)), summary_(std::move(summary)) {}

const Result& ResultGrid::get_best_result(const Objective& metric, std::optional<Mode> direction, Scope scope) const {
  const auto [name, mode] = control::direction_of(metric, direction, {summary_.metric, summary_.mode});
  const std::optional<std::size_t> best = control::index_of_best(scores(name, scope), mode);
  if (!best)
    throw NotFound("no trial of " + experiment_path_.string() + " has a finite number \"" + name + "\" in its " +
                   (scope == Scope::last ? "last result" : "results") + reported_instead(results_) +
                   (num_errors() > 0 ? "; see errors() for the trials that failed" : ""));
  return results_[*best];
}

std::vector<std::size_t> ResultGrid::pareto_front(const std::vector<Objective>& metrics, Scope scope) const {
  const std::vector<control::Direction> directions = control::directions_of(metrics, {summary_.metric, summary_.mode});
  std::vector<Losses> losses(size());
  for (const auto& [metric, mode] : directions) {
    const std::vector<std::optional<double>> values = scores(metric, scope);
    for (std::size_t i = 0; i < size(); ++i) {
      if (values[i]) losses[i].push_back(mode == Mode::min ? *values[i] : -*values[i]);
    }
  }
  std::vector<std::size_t> trials;
  std::vector<Losses> compared;
  for (std::size_t i = 0; i < size(); ++i) {
    if (losses[i].size() < directions.size()) continue;
    trials.push_back(i);
    compared.push_back(losses[i]);
  }
  if (trials.empty()) {
    std::vector<std::string> names;
    std::ranges::transform(directions, std::back_inserter(names), &control::Direction::metric);
    throw NotFound(fmt::format("no trial of {} has finite numbers \"{}\"{}", experiment_path_.string(),
                               fmt::join(names, "\" and \""), reported_instead(results_)));
  }
  std::vector<std::size_t> front;
  for (const std::size_t i : tune::pareto_front(compared)) front.push_back(trials[i]);
  std::ranges::stable_sort(front, {}, [&](std::size_t i) -> const Losses& { return losses[i]; });
  return front;
}

std::vector<std::optional<double>> ResultGrid::scores(const std::string& metric, Scope scope) const {
  std::vector<std::optional<double>> scores(results_.size());
  if (scope == Scope::last) {
    std::ranges::transform(results_, scores.begin(),
                           [&](const Result& result) { return control::finite_number(result.metrics, metric); });
    return scores;
  }
  std::vector<double> values;
  for_each_result([&](const Result& trial, std::size_t index, const Metrics& metrics) {
    if (index == 0) values.clear();
    if (const auto value = control::finite_number(metrics, metric)) values.push_back(*value);
    const bool is_last = index + 1 == trial.num_results();
    if (is_last && !values.empty())
      scores[static_cast<std::size_t>(&trial - results_.data())] = in_scope(values, scope);
  });
  return scores;
}

void ResultGrid::for_each_result(const Visit& visit) const {
  detail::visit_results(*this, [](std::size_t) { return std::size_t{0}; }, visit);
}

void detail::visit_results(const ResultGrid& grid, const std::function<std::size_t(std::size_t)>& first,
                           const ResultGrid::Visit& visit) {
  std::optional<ExperimentReader> reader;
  for (std::size_t trial = 0; trial < grid.size(); ++trial) {
    const Result& result = grid[trial];
    for (std::size_t i = first(trial); i < result.num_results(); ++i) {
      if (result.rows->own.empty()) {
        visit(result, i, result.rows->results[i]);
        continue;
      }
      if (!reader) reader.emplace(grid.experiment_path(), ExperimentReader::Check::rows);
      visit(result, i, read_metrics(*reader, result.rows->own[i], result.trial_id));
    }
  }
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
  return static_cast<std::size_t>(std::ranges::count(results_, TrialStatus::terminated, &Result::status)) +
         num_stopped();
}

std::size_t ResultGrid::num_stopped() const {
  return static_cast<std::size_t>(std::ranges::count(results_, TrialStatus::stopped, &Result::status));
}

}  // namespace cadre::tune
