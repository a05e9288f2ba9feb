#include <fmt/format.h>

#include <cmath>
#include <map>

#include "base/json.h"
#include "cadre/train.h"
#include "checkpoint/checkpoint_registry.h"
#include "control/objective.h"
#include "control/replay.h"
#include "publish/restore.h"
#include "store/experiment_reader.h"
#include "train/journal.h"
#include "train/options.h"
#include "train/reported_checkpoint.h"
#include "train/run.h"

namespace cadre::train {
namespace fs = std::filesystem;

Result Result::from_directory(const fs::path& directory) {
  if (const auto uri = publish::published_at(directory)) {
    auto copy = publish::reading_copy(*uri);
    Result result = from_directory(*copy);
    result.copy = std::move(copy);
    return result;
  }
  const store::ExperimentReader reader(directory, store::ExperimentReader::Check::rows);
  const std::string source = "the options in " + (directory / store::kStoreFileName).string();
  const Description description = parse_description(base::parse_json(reader.info().options, source), source);
  const fs::path plain = fs::absolute(directory).lexically_normal();

  // Replays the recorded events in a Run and reads the result from its state.
  Run run(description.options);
  Result result{.path = plain, .config = description.options.train_loop_config};
  const auto feed = [&](const Event& event) {
    Actions actions;
    run.handle(event, actions);
  };
  control::replaying("the store in " + plain.string(), [&] {
    reader.visit({.result =
                      [&](const store::ResultRow& row) {
                        Event event = to_event(row);
                        if (!row.repeated) result.metrics_history.push_back(std::get<GroupReported>(event).metrics);
                        feed(event);
                      },
                  .event = [&](const store::EventRow& row) { feed(to_event(row)); },
                  .decision = [](const store::DecisionRow&) {}});
  });
  if (!result.metrics_history.empty()) result.metrics = result.metrics_history.back();
  const checkpoint::CheckpointRegistry& registry = run.checkpoints().registry();
  for (const checkpoint::CheckpointId id : registry.kept(0))
    result.best_checkpoints.push_back(
        to_reported_checkpoint(entry_of(id, run.checkpoints(), run.validations()), plain));
  if (const auto& latest = run.checkpoints().latest())
    result.checkpoint = Checkpoint::from_directory(plain / registry.get(*latest).directory);
  if (run.has_trained()) result.return_value = run.return_value();
  result.finished = run.status() == RunStatus::finished;
  if (run.status() == RunStatus::failed) result.error = run.error();
  result.attempts = run.attempt();
  return result;
}

Checkpoint Result::get_best_checkpoint(const Objective& objective, std::optional<Mode> direction) const {
  const auto [metric, mode] = control::direction_of(objective, direction);
  const ReportedCheckpoint* best = nullptr;
  double best_value = 0;
  for (const ReportedCheckpoint& entry : best_checkpoints) {
    const std::optional<double> value = entry.metrics.number(metric);
    if (!value || !std::isfinite(*value)) continue;
    const bool better = mode == Mode::max ? *value > best_value : *value < best_value;
    if (best != nullptr && !better) continue;
    best = &entry;
    best_value = *value;
  }
  if (best == nullptr) throw NotFound("no kept checkpoint of " + path.string() + " has a finite \"" + metric + "\"");
  return best->checkpoint;
}

}  // namespace cadre::train
