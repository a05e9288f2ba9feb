#include "tune/results/result_reader.h"

#include <algorithm>
#include <map>
#include <span>

#include "base/json.h"
#include "base/system_error.h"
#include "cadre/error.h"
#include "checkpoint/checkpoint_files.h"
#include "checkpoint/checkpoint_registry.h"
#include "publish/restore.h"
#include "store/experiment_reader.h"
#include "store/read_store.h"
#include "tune/description.h"
#include "tune/experiment_directory.h"
#include "tune/results/result_rows.h"
#include "tune/results/study_results.h"
#include "tune/results/trial_histories.h"
#include "tune/searchers/variant_generator.h"
#include "tune/study_file.h"
#include "tune/trial.h"

namespace cadre::tune {
namespace fs = std::filesystem;
namespace {

using store::ExperimentReader;

TrialStatus status_of(const std::string& name, bool runs) {
  for (const TrialStatus status : {TrialStatus::terminated, TrialStatus::stopped, TrialStatus::error}) {
    if (name == to_string(status)) return status;
  }
  if (!runs) return TrialStatus::pending;
  return name == to_string(TrialStatus::running)  ? TrialStatus::running
         : name == to_string(TrialStatus::paused) ? TrialStatus::paused
                                                  : TrialStatus::pending;
}

Value stored_options(const ExperimentReader& reader, const fs::path& directory) {
  return base::parse_json(reader.info().options, "the options in " + directory.string());
}

ExperimentSummary summary_of(const ExperimentReader& reader, const fs::path& directory, const TuneConfig& tune,
                             const Value& options) {
  return {.name = directory.filename(),
          .trainable = reader.info().trainable,
          .state = reader.finished()     ? ExperimentState::finished
                   : reader.controller() ? ExperimentState::running
                                         : ExperimentState::interrupted,
          .controller = reader.controller().value_or(""),
          .options = Config(options.dict()),
          .metric = tune.metric.name,
          .mode = tune.mode};
}

class ResultMaker {
 public:
  ResultMaker(ExperimentReader& reader, const fs::path& directory, const TrialHistories& histories,
              const TunerOptions& options, bool runs, std::shared_ptr<const fs::path> copy)
      : reader_(reader),
        directory_(directory),
        histories_(histories),
        variants_(options.param_space, options.tune_config),
        checkpoint_config_(options.run_config.checkpoint_config),
        runs_(runs),
        copy_(std::move(copy)) {}

  Result make(std::size_t index, const store::TrialRow& row, const std::vector<std::string>& ids) const {
    const TrialHistory& history = histories_.trials()[index];
    Result result{.trial_id = row.trial_id,
                  .status = status_of(row.status, runs_),
                  .config = Config(base::parse_json(row.config, "the config of trial " + row.trial_id).dict()),
                  .metrics = metrics(history.last_result),
                  .path = directory_ / row.directory,
                  .drawn_config = history.drawn_config,
                  .exploits = history.exploits,
                  .attempts = row.attempt,
                  .failures = history.failures,
                  .rows = std::make_shared<const detail::ResultRows>(
                      detail::ResultRows{history.results, history.donor_results, copy_})};
    if (result.status == TrialStatus::error) result.error = row.error;
    result.sampled = variants_.sampled(static_cast<std::int64_t>(index), result.drawn_config);
    for (std::size_t i = 0; i < result.exploits.size(); ++i) {
      ExploitRecord& exploit = result.exploits[i];
      exploit.training_iteration = iteration(history.before[i]);
      exploit.donor_iteration = iteration(history.donor_results[i]);
      exploit.donor = ids[history.donors[i]];
      exploit.checkpoint = directory_ / exploit.checkpoint;
    }
    return result;
  }

  // `existing` are the trial's own checkpoints.
  void add_checkpoints(Result& result, std::size_t index, std::span<const CheckpointName> existing,
                       const std::vector<store::TrialRow>& rows) const {
    const auto checkpoint = [&](const CheckpointName& name) {
      return Checkpoint::from_directory(directory_ / rows[name.trial].directory /
                                        checkpoint::checkpoint_name(static_cast<std::int64_t>(name.number)));
    };
    const TrialHistory& history = histories_.trials()[index];
    if (history.latest_checkpoint) result.checkpoint = checkpoint(*history.latest_checkpoint);
    // Existing checkpoints are those that retention keeps, and some that other trials may continue from.
    checkpoint::CheckpointRegistry registry(checkpoint_config_);
    std::map<checkpoint::CheckpointId, CheckpointName> names;
    for (const CheckpointName& name : existing) {
      if (name.number >= history.checkpoints.size()) continue;  // reported too late, by replaced decisions
      names.emplace(registry.add(0, 0, "", metrics(history.checkpoints[name.number].result)), name);
    }
    if (names.empty()) return;
    for (const checkpoint::CheckpointId id : registry.kept(0))
      result.best_checkpoints.emplace_back(checkpoint(names.at(id)), registry.get(id).metrics);
  }

 private:
  Metrics metrics(std::int64_t result) const {
    if (result == 0) return {};
    return Metrics(base::parse_json(reader_.metrics(result), "a result in " + directory_.string()).dict());
  }
  std::int64_t iteration(std::int64_t result) const { return training_iteration(metrics(result)); }

  ExperimentReader& reader_;
  const fs::path& directory_;
  const TrialHistories& histories_;
  VariantGenerator variants_;
  CheckpointConfig checkpoint_config_;
  bool runs_;
  std::shared_ptr<const fs::path> copy_;
};

}  // namespace

ResultGrid ResultGrid::from_directory(const fs::path& directory) {
  return base::with_storage_errors([&] {
    if (const auto uri = publish::published_at(directory)) {
      auto copy = publish::reading_copy(*uri);
      return read_results(*copy, ExperimentReader::Check::whole, copy);
    }
    if (StudyFile::exists(directory)) return read_study(directory);
    if (!store::has_store(directory))
      throw NotFound("there is no experiment in " + fs::absolute(directory).lexically_normal().string() +
                     ": it has no file " + store::kStoreFileName);
    return read_results(directory, ExperimentReader::Check::whole);
  });
}

ResultGrid read_results(const fs::path& directory, ExperimentReader::Check check,
                        std::shared_ptr<const fs::path> copy) {
  const fs::path plain = fs::canonical(directory);  // resolves links, so that the experiment keeps its name
  ExperimentReader reader(plain, check);
  const Value stored = stored_options(reader, plain);
  const TunerOptions options = parse_description(stored, "the options in " + plain.string()).options;
  ExperimentSummary summary = summary_of(reader, plain, options.tune_config, stored);
  const std::vector<store::TrialRow> rows = reader.trials();
  TrialHistories histories(rows, reader.checkpoints());
  reader.visit({.result = [&](const store::ResultRow& row) { histories.add(row); },
                .event = [&](const store::EventRow& row) { histories.add(row); },
                .decision = [&](const store::DecisionRow& row) { histories.add(row); }});
  summary.started = histories.first_time();
  summary.last_event = histories.last_time();
  summary.running_seconds = histories.running_time().seconds_at(histories.last_time());
  summary.sessions = histories.running_time().sessions();
  summary.stop_reason = histories.stop_reason();
  summary.is_paused = summary.state == ExperimentState::running && histories.running_time().is_paused();

  const ResultMaker maker(reader, plain, histories, options, summary.state == ExperimentState::running,
                          std::move(copy));
  std::vector<std::string> ids;
  std::ranges::transform(rows, std::back_inserter(ids), &store::TrialRow::trial_id);
  const std::vector<CheckpointName>& existing = histories.existing_checkpoints();
  std::vector<Result> results;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    results.push_back(maker.make(i, rows[i], ids));
    maker.add_checkpoints(results.back(), i, std::ranges::equal_range(existing, i, {}, &CheckpointName::trial), rows);
  }
  return {plain, std::move(results), std::move(summary)};
}

}  // namespace cadre::tune
