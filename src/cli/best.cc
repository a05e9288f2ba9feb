// cadre best: the best trial, or those on a Pareto front, or the best checkpoint of a training run.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cadre/error.h"
#include "cli/columns.h"
#include "cli/commands.h"
#include "cli/documents.h"
#include "cli/find.h"
#include "cli/output.h"
#include "cli/scopes.h"
#include "cli/training_run.h"
#include "control/objective.h"

namespace cadre::cli {
namespace {

using tune::Scope;

struct BestOptions {
  std::string experiment = {};
  std::string metric = {};
  std::string mode = {};
  std::string scope = "last";
  std::vector<std::string> pareto = {};
  bool checkpoint = false;
  bool json = false;
};

// Returns the kept checkpoint with the best value of the metric; the latest one if none has a value.
std::optional<Checkpoint> checkpoint_of(const tune::Result& trial, const std::string& metric, Mode mode) {
  try {
    return trial.get_best_checkpoint(metric, mode);
  } catch (const NotFound&) {
    return trial.checkpoint;
  }
}

// Returns "iteration 45, mean_accuracy=0.953" for the result that a checkpoint was reported with; empty if its value
// is `value`, the trial's own, or if the checkpoint is none of the kept ones.
std::string other_result(const tune::Result& trial, const Checkpoint& checkpoint, const std::string& metric,
                         double value) {
  for (const auto& [kept, result] : trial.best_checkpoints) {
    if (kept.path() != checkpoint.path()) continue;
    const std::optional<double> own = result.number(metric);
    if (own == value) return {};
    return fmt::format("iteration {}{}", value_text(result.at(tune::TRAINING_ITERATION)),
                       own ? fmt::format(", {}={}", shown(metric), value_text(*own)) : "");
  }
  return {};
}

// ---- One metric

void show_best(const tune::ResultGrid& grid, const BestOptions& options) {
  const Scope scope = scope_of(options.scope);
  const auto [metric, mode] = direction_of(grid.summary(), options.metric, options.mode);
  const tune::Result& best = grid.get_best_result(metric, mode, scope);
  const std::optional<double> value = grid.scores(metric, scope)[static_cast<std::size_t>(&best - &*grid.begin())];
  const std::optional<Checkpoint> checkpoint = checkpoint_of(best, metric, mode);
  if (options.checkpoint) {
    if (!checkpoint)
      throw NotFound("trial " + best.trial_id + ", the best of " + grid.summary().name + ", has no checkpoint");
    if (const std::string other = other_result(best, *checkpoint, metric, *value); !other.empty())
      fmt::print(stderr, "cadre: the checkpoint is of {}; the trial's value is {}\n", other, value_text(*value));
    return write_path(place_text(checkpoint->path()));
  }
  if (options.json) {
    return write_json(Dict{{"trial_id", best.trial_id},
                           {"metric", metric},
                           {"mode", control::to_string(mode)},
                           {"scope", options.scope},
                           {"value", *value},
                           {"checkpoint", checkpoint ? Value(place_text(checkpoint->path())) : Value()},
                           {"trial", document_of(best)}});
  }
  Page page;
  page.heading(fmt::format("Trial {} of {}", best.trial_id, shown(grid.summary().name)));
  page.field("value",
             fmt::format("{}={} ({}, {})", shown(metric), value_text(*value), control::to_string(mode), options.scope));
  page.field("status", to_string(best.status));
  page.field("config", values_text(best.config.dict()));
  page.field("directory", shown(place_text(best.path)));
  page.field("checkpoint", checkpoint ? shown(place_text(checkpoint->path())) : "none");
  if (checkpoint) page.field("saved at", other_result(best, *checkpoint, metric, *value));
  page.write();
}

// ---- Several metrics

// The trials on the front, and the values of each metric by the index of the trial.
struct Front {
  std::vector<Objective> metrics;
  std::vector<std::size_t> trials;
  std::vector<std::vector<std::optional<double>>> values = {};
};

Front front_of(const tune::ResultGrid& grid, const BestOptions& options) {
  const Scope scope = scope_of(options.scope);
  Front front{.metrics = objectives_of(grid.summary(), options.pareto), .trials = {}};
  front.trials = grid.pareto_front(front.metrics, scope);
  for (const Objective& metric : front.metrics) front.values.push_back(grid.scores(metric.name, scope));
  return front;
}

Dict front_document(const tune::ResultGrid& grid, const Front& front, const BestOptions& options) {
  List metrics;
  for (const Objective& metric : front.metrics)
    metrics.push_back(Dict{{"metric", metric.name}, {"mode", control::to_string(*metric.mode)}});
  List trials;
  for (const std::size_t i : front.trials) {
    Dict values;
    for (std::size_t m = 0; m < front.metrics.size(); ++m)
      values.emplace_back(front.metrics[m].name, *front.values[m][i]);
    trials.push_back(Dict{{"trial_id", grid[i].trial_id}, {"values", values}, {"trial", document_of(grid[i])}});
  }
  return {{"metrics", std::move(metrics)}, {"scope", options.scope}, {"front", std::move(trials)}};
}

Table table_of(const tune::ResultGrid& grid, const Front& front) {
  Table table{.columns = {column("Trial", 0), column("status", 2)}};
  for (const std::size_t i : front.trials) {
    table.columns[0].cells.push_back(text_cell(grid[i].trial_id));
    table.columns[1].cells.push_back(text_cell(to_string(grid[i].status)));
  }
  for (std::size_t m = 0; m < front.metrics.size(); ++m) {
    table.columns.push_back(column(front.metrics[m].name, 0, true));
    for (const std::size_t i : front.trials)
      table.columns.back().cells.push_back(number_cell(fmt::format("{:.6g}", *front.values[m][i])));
  }
  for (const std::string& path : parameters_of(grid)) {
    table.columns.push_back(column(path, 3));
    for (const std::size_t i : front.trials)
      table.columns.back().cells.push_back(value_cell(grid[i].config.find(path)));
  }
  return table;
}

void show_front(const tune::ResultGrid& grid, const BestOptions& options) {
  const Front front = front_of(grid, options);
  if (options.json) return write_json(front_document(grid, front, options));
  std::string metrics;
  for (const Objective& metric : front.metrics)
    metrics +=
        fmt::format("{}{} ({})", metrics.empty() ? "" : ", ", shown(metric.name), control::to_string(*metric.mode));
  Page page;
  page.heading(fmt::format("Pareto front of {}: {} of {} trials, by {} ({})", shown(grid.summary().name),
                           front.trials.size(), grid.size(), metrics, options.scope));
  page.table(table_of(grid, front));
  page.write();
}

// ---- A training run

void show_best_of_run(const TrainingRun& run, const BestOptions& options) {
  if (!options.pareto.empty() || options.scope != BestOptions().scope)
    throw InvalidArgument(fmt::format("{} is a training run: --{} is for the trials of an experiment", run.name,
                                      options.pareto.empty() ? "scope" : "pareto"));
  const auto [metric, mode] = direction_of(
      tune::ExperimentSummary{.name = run.name, .metric = run.metric, .mode = run.mode}, options.metric, options.mode);
  const std::filesystem::path path = run.result.get_best_checkpoint(metric, mode).path();
  if (options.checkpoint) return write_path(place_text(path));
  const auto best = std::ranges::find_if(
      run.result.best_checkpoints, [&](const train::ReportedCheckpoint& one) { return one.checkpoint.path() == path; });
  const Value& value = *best->metrics.find(metric);
  if (options.json) {
    return write_json(Dict{{"name", run.name},
                           {"metric", metric},
                           {"mode", control::to_string(mode)},
                           {"value", value},
                           {"checkpoint", place_text(path)},
                           {"metrics", best->metrics.dict()},
                           {"status", train::to_string(best->status)}});
  }
  Page page;
  page.heading("Training run " + shown(run.name));
  page.field("value", fmt::format("{}={} ({})", shown(metric), value_text(value), control::to_string(mode)));
  page.field("checkpoint", shown(place_text(path)));
  page.field("metrics", shown(values_text(best->metrics.dict())));
  if (best->status != train::ReportedCheckpointStatus::committed) page.field("status", train::to_string(best->status));
  page.write();
}

void run(const BestOptions& options) {
  const Found found = find_directory(options.experiment);
  if (is_training_run(found.directory)) return show_best_of_run(read_training_run(found.directory), options);
  const tune::ResultGrid grid = open_experiment(found);
  options.pareto.empty() ? show_best(grid, options) : show_front(grid, options);
}

}  // namespace

void add_best(Command& program) {
  const auto options = std::make_shared<BestOptions>();
  Command command = program.add_command("best", "Show the best trial, checkpoint or Pareto front");
  command.option("experiment", &options->experiment, "Its directory, name or URI, or a training run's").required();
  const Option metric = command.option("--metric", &options->metric, "Metric to compare by [the experiment's]");
  const Option mode = command.option("--mode", &options->mode, "max or min [the experiment's]").one_of({"max", "min"});
  add_scope(command, &options->scope);
  const Option checkpoint = command.flag("--checkpoint", &options->checkpoint, "Print only the path of the checkpoint");
  command.option("--pareto", &options->pareto, "The Pareto front of loss:min,accuracy:max")
      .separated_by(',')
      .excludes(metric)
      .excludes(mode)
      .excludes(checkpoint);
  command.flag("--json", &options->json, "One JSON document with everything");
  command.footer(std::string(kScopesFooter) + "\nIn scripts: load $(cadre best mine --checkpoint)");
  command.on_call([options] { run(*options); });
}

}  // namespace cadre::cli
