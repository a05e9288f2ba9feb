#include "cli/training_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/host_object.h"
#include "base/native_stack.h"
#include "cli/find.h"
#include "cli/output.h"
#include "control/beginning.h"
#include "store/experiment_reader.h"
#include "store/run_directory.h"
#include "train/read_run.h"
#include "tune/results/result_rows.h"

namespace cadre::cli {
namespace fs = std::filesystem;

bool is_training_run(const fs::path& directory) {
  return control::kind_in(directory) == store::training_run_tenant.kind;
}

TrainingRun read_training_run(const fs::path& directory) {
  const store::ExperimentReader reader(directory, store::ExperimentReader::Check::rows);
  train::ReadRun read = train::read_run(directory);
  const CheckpointConfig& ranking = read.options.run_config.checkpoint_config;
  TrainingRun run{.name = fs::canonical(directory).filename(),
                  .controller = reader.controller().value_or(""),
                  .result = std::move(read.result),
                  .rows = std::move(read.rows)};
  if (ranking.checkpoint_score_attribute) {
    run.metric = ranking.checkpoint_score_attribute->name;
    run.mode =
        ranking.checkpoint_score_order ? ranking.checkpoint_score_order : ranking.checkpoint_score_attribute->mode;
  }
  for (const store::TrialRow& row : reader.trials()) run.status = row.status;
  const auto note_time = [&](const auto& row) { run.last_event = std::max(run.last_event, row.time); };
  reader.visit({.result = note_time, .event = note_time, .decision = [](const store::DecisionRow&) {}});
  run.state = reader.finished()     ? "finished"
              : reader.controller() ? "running"
              : run.result.error    ? "failed"
                                    : "interrupted";
  return run;
}

tune::ResultGrid as_experiment(const TrainingRun& run) {
  using tune::TrialStatus;
  const train::Result& result = run.result;
  tune::Result trial{.trial_id = run.name,
                     .status = run.state == "finished"  ? TrialStatus::terminated
                               : run.state == "failed"  ? TrialStatus::error
                               : run.state == "running" ? TrialStatus::running
                                                        : TrialStatus::pending,
                     .config = result.config,
                     .checkpoint = result.checkpoint,
                     .path = result.path,
                     .error = result.error,
                     .drawn_config = result.config,
                     .attempts = result.attempts};
  tune::detail::ResultRows rows;
  for (const Dict& row : run.rows) rows.results.emplace_back(row);
  if (!rows.results.empty()) trial.metrics = rows.results.back();
  trial.rows = std::make_shared<const tune::detail::ResultRows>(std::move(rows));
  return {result.path,
          {std::move(trial)},
          tune::ExperimentSummary{.name = run.name, .metric = name_in_rows(run, run.metric), .mode = run.mode}};
}

std::string name_in_rows(const TrainingRun& run, const std::string& metric) {
  const std::string found = "validation/" + metric;
  const auto have = [&](const std::string& name) {
    return std::ranges::any_of(run.rows, [&](const Dict& row) { return Metrics(row).contains(name); });
  };
  return !metric.empty() && !have(metric) && have(found) ? found : metric;
}

Dict document_of(const TrainingRun& run) {
  const train::Result& result = run.result;
  List checkpoints;
  for (const train::ReportedCheckpoint& one : result.best_checkpoints)
    checkpoints.push_back(Dict{{"path", place_text(one.checkpoint.path())},
                               {"metrics", one.metrics.dict()},
                               {"status", train::to_string(one.status)},
                               {"reported_metrics", one.reported_metrics.dict()},
                               {"validation_metrics", one.validation_metrics.dict()},
                               {"validation_error", one.validation_error}});
  return {{"kind", "training_run"},
          {"name", run.name},
          {"path", place_text(fs::canonical(result.path))},
          {"state", run.state},
          {"status", run.status},
          {"controller", run.controller},
          {"last_event", run.last_event},
          {"attempts", result.attempts},
          {"reports", result.metrics_history.size()},
          {"metrics", result.metrics.dict()},
          {"config", base::without_host_objects(result.config.value())},
          {"checkpoints", std::move(checkpoints)},
          {"return_value", result.return_value},
          {"error", result.error ? Value(*result.error) : Value()}};
}

void show(const TrainingRun& run, bool json) {
  if (json) return write_json(document_of(run));
  const train::Result& result = run.result;
  Page page;
  page.heading("Training run " + shown(run.name));
  page.field("state", run.controller.empty() ? run.state : fmt::format("{}, by {}", run.state, shown(run.controller)));
  page.field("status", shown(run.status));
  page.field("directory", shown(place_text(result.path)));
  page.field("attempts", std::to_string(result.attempts));
  page.field("reports", std::to_string(result.metrics_history.size()));
  page.field("last event", time_text(run.last_event));
  page.field("config", shown(values_text(result.config.dict())));
  page.field("last report", shown(values_text(result.metrics.dict())));
  if (!result.return_value.is_null()) page.field("returned", value_text(result.return_value));
  std::vector<std::pair<std::string, std::string>> checkpoints;
  for (const train::ReportedCheckpoint& one : result.best_checkpoints) {
    const bool is_committed = one.status == train::ReportedCheckpointStatus::committed;
    checkpoints.emplace_back(one.checkpoint.path().filename(),
                             shown(values_text(one.metrics.dict())) +
                                 (is_committed ? "" : fmt::format("  ({})", train::to_string(one.status))));
  }
  page.pairs("Checkpoints, the best one last:", checkpoints);
  if (result.error) page.line("Error:\n" + shown_lines(base::without_native_stacks(*result.error)), Style::bad);
  page.write();
}

}  // namespace cadre::cli
