#include "cli/documents.h"

#include "base/host_object.h"
#include "cli/find.h"
#include "control/objective.h"

namespace cadre::cli {
namespace {

Dict document_of(const tune::ExploitRecord& exploit) {
  List changes;
  for (const auto& [key, before, operation, after] : exploit.changes)
    changes.push_back(Dict{{"key", key},
                           {"before", base::without_host_objects(before)},
                           {"operation", operation},
                           {"after", base::without_host_objects(after)}});
  return {{"training_iteration", exploit.training_iteration},
          {"donor", exploit.donor},
          {"donor_iteration", exploit.donor_iteration},
          {"checkpoint", exploit.checkpoint.string()},
          {"config", base::without_host_objects(exploit.config.value())},
          {"changes", std::move(changes)}};
}

}  // namespace

Dict document_of(const tune::ExperimentSummary& summary, const tune::ResultGrid& grid) {
  Dict counts;
  for (const tune::TrialStatus status :
       {tune::TrialStatus::pending, tune::TrialStatus::running, tune::TrialStatus::paused,
        tune::TrialStatus::terminated, tune::TrialStatus::stopped, tune::TrialStatus::error}) {
    std::int64_t count = 0;
    for (const tune::Result& trial : grid) count += trial.status == status ? 1 : 0;
    counts.emplace_back(to_string(status), count);
  }
  return {{"name", summary.name},
          {"path", place_text(grid.experiment_path())},
          {"trainable", summary.trainable},
          {"state", to_string(summary.state)},
          {"is_paused", summary.is_paused},
          {"controller", summary.controller.empty() ? Value() : Value(summary.controller)},
          {"metric", summary.metric.empty() ? Value() : Value(summary.metric)},
          {"mode", summary.mode ? Value(control::to_string(*summary.mode)) : Value()},
          {"started", summary.started},
          {"last_event", summary.last_event},
          {"running_seconds", summary.running_seconds},
          {"sessions", summary.sessions},
          {"stop_reason", summary.stop_reason.empty() ? Value() : Value(summary.stop_reason)},
          {"trials_by_status", std::move(counts)},
          {"options", summary.options.dict()}};
}

Dict document_of(const tune::Result& trial) {
  List exploits;
  for (const tune::ExploitRecord& exploit : trial.exploits) exploits.push_back(document_of(exploit));
  List checkpoints;
  for (const auto& [checkpoint, metrics] : trial.best_checkpoints)
    checkpoints.push_back(Dict{{"path", place_text(checkpoint.path())}, {"metrics", metrics.dict()}});
  return {{"trial_id", trial.trial_id},
          {"status", to_string(trial.status)},
          {"path", place_text(trial.path)},
          {"config", base::without_host_objects(trial.config.value())},
          {"drawn_config", base::without_host_objects(trial.drawn_config.value())},
          {"sampled", trial.sampled},
          {"metrics", trial.metrics.dict()},
          {"results", trial.num_results()},
          {"attempts", trial.attempts},
          {"failures", trial.failures},
          {"error", trial.error ? Value(*trial.error) : Value()},
          {"checkpoint", trial.checkpoint ? Value(place_text(trial.checkpoint->path())) : Value()},
          {"best_checkpoints", std::move(checkpoints)},
          {"exploits", std::move(exploits)}};
}

}  // namespace cadre::cli
