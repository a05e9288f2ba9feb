#include "train/read_run.h"

#include <variant>

#include "base/json.h"
#include "checkpoint/checkpoint_registry.h"
#include "control/replay.h"
#include "loggers/amendments.h"
#include "publish/restore.h"
#include "store/experiment_reader.h"
#include "train/journal.h"
#include "train/options.h"
#include "train/reported_checkpoint.h"
#include "train/result_rows.h"
#include "train/run.h"

namespace cadre::train {
namespace fs = std::filesystem;
namespace {

// Adds what a validation has found to its report.
void add(const ShowValidation& validation, ReadRun& read) {
  const std::optional<Amendment> more = amendment_of(validation);
  if (!more || more->number >= read.rows.size()) return;
  read.rows[more->number] = loggers::amended(std::move(read.rows[more->number]), more->values);
  read.result.validation_history[more->number] = validation.validated;
}

}  // namespace

ReadRun read_run(const fs::path& directory) {
  if (const auto uri = publish::published_at(directory)) {
    auto copy = publish::reading_copy(*uri);
    ReadRun read = read_run(*copy);
    read.result.copy = std::move(copy);
    return read;
  }
  const store::ExperimentReader reader(directory, store::ExperimentReader::Check::rows);
  const std::string source = "the options in " + (directory / store::kStoreFileName).string();
  const Description description = parse_description(base::parse_json(reader.info().options, source), source);
  const fs::path plain = fs::absolute(directory).lexically_normal();

  Run run(description.options);
  ResultRows rows;
  ReadRun read{.result = {.path = plain, .config = description.options.train_loop_config},
               .options = description.options};
  Result& result = read.result;
  const auto feed = [&](const Event& event, double time) {
    Actions actions;
    run.handle(event, actions);
    if (std::optional<Dict> row = rows.add(event, actions, time)) {
      read.rows.push_back(*std::move(row));
      result.metrics_history.push_back(std::get<GroupReported>(event).metrics);
      result.validation_history.emplace_back();
    }
    for (const Action& action : actions) {
      if (const auto* validation = std::get_if<ShowValidation>(&action)) add(*validation, read);
    }
  };
  control::replaying("the store in " + plain.string(), [&] {
    reader.visit({.result = [&](const store::ResultRow& row) { feed(to_event(row), row.time); },
                  .event = [&](const store::EventRow& row) { feed(to_event(row), row.time); },
                  .decision = [](const store::DecisionRow&) {}});
  });
  if (!result.metrics_history.empty())
    result.metrics = with_validation(result.metrics_history.back(), result.validation_history.back());
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
  return read;
}

}  // namespace cadre::train
