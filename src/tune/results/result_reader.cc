#include "tune/results/result_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

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

}  // namespace

// Holds all of what was read that reading on needs.
struct ResultReader::State {
  State(const ExperimentReader& reader, const fs::path& plain, std::shared_ptr<const fs::path> shared)
      : directory(plain),
        copy(std::move(shared)),
        writer(reader.writer()),
        info(reader.info()),
        stored(base::parse_json(info.options, "the options in " + plain.string())),
        options(parse_description(stored, "the options in " + plain.string()).options),
        variants(options.param_space, options.tune_config) {}

  // Returns true if the store is the one that was read, perhaps with more rows.
  bool fits(const ExperimentReader& reader) const {
    return reader.writer() == writer && reader.info().options == info.options && reader.has_passed(position);
  }
  void read(ExperimentReader& reader);

  const fs::path directory;
  std::vector<Result> results = {};
  ExperimentSummary summary = {};

 private:
  // The trials whose results may differ from those that were made.
  using Touched = std::set<std::size_t>;

  void read_trials(const ExperimentReader& reader, Touched& touched);
  void read_checkpoints(const ExperimentReader& reader, Touched& touched);
  void read_rows(const ExperimentReader& reader, Touched& touched);
  void summarize(const ExperimentReader& reader);
  Result result_of(ExperimentReader& reader, std::size_t index) const;
  void add_checkpoints(ExperimentReader& reader, Result& result, std::size_t index) const;
  Metrics metrics(ExperimentReader& reader, std::int64_t result) const {
    if (result == 0) return {};
    return Metrics(base::parse_json(reader.metrics(result), "a result in " + directory.string()).dict());
  }
  std::int64_t iteration(ExperimentReader& reader, std::int64_t result) const {
    return training_iteration(metrics(reader, result));
  }

  std::shared_ptr<const fs::path> copy;
  std::string writer;
  store::ExperimentInfo info;
  Value stored;
  TunerOptions options;
  VariantGenerator variants;
  store::Position position = {};
  store::RowChecksums known_trials = {};
  store::RowChecksums known_checkpoints = {};
  std::vector<store::TrialRow> rows = {};
  std::map<std::int64_t, CheckpointName> checkpoints = {};  // that exist, by id
  TrialHistories histories = {};
  bool runs = false;
};

void ResultReader::State::read(ExperimentReader& reader) {
  Touched touched;
  read_trials(reader, touched);
  read_checkpoints(reader, touched);
  read_rows(reader, touched);
  position = reader.position();
  summarize(reader);
  if (const bool now = summary.state == ExperimentState::running; std::exchange(runs, now) != now) {
    for (std::size_t i = 0; i < rows.size(); ++i) touched.insert(i);  // the status of those that have not ended
  }
  results.resize(rows.size());
  for (const std::size_t i : touched) {
    results[i] = result_of(reader, i);
    add_checkpoints(reader, results[i], i);
  }
}

void ResultReader::State::read_trials(const ExperimentReader& reader, Touched& touched) {
  auto [changed, removed] = reader.changed_trials(known_trials);
  if (!removed.empty())
    throw StorageError(fmt::format("trial {} has vanished from the store in {}: it was changed by another program",
                                   removed.front(), directory.string()));
  for (store::TrialRow& row : changed) {
    if (row.trial < 0 || std::cmp_greater_equal(row.trial, rows.size())) {
      histories.add(row);
      rows.emplace_back();
    }
    const auto index = static_cast<std::size_t>(row.trial);
    rows[index] = std::move(row);
    touched.insert(index);
  }
}

void ResultReader::State::read_checkpoints(const ExperimentReader& reader, Touched& touched) {
  const auto [added, removed] = reader.changed_checkpoints(known_checkpoints);
  if (added.empty() && removed.empty()) return;
  for (const std::int64_t id : removed) {
    touched.insert(checkpoints.at(id).trial);
    checkpoints.erase(id);
  }
  for (const store::CheckpointRow& row : added) {
    const CheckpointName name = histories.name_of(row.directory);
    checkpoints.insert_or_assign(row.id, name);
    touched.insert(name.trial);
  }
  std::vector<CheckpointName> existing;
  for (const auto& [id, name] : checkpoints) existing.push_back(name);
  histories.set_existing(std::move(existing));
}

void ResultReader::State::read_rows(const ExperimentReader& reader, Touched& touched) {
  const auto add = [&](const auto& row) {
    histories.add(row);
    if (row.trial >= 0 && std::cmp_less(row.trial, rows.size())) touched.insert(static_cast<std::size_t>(row.trial));
  };
  reader.visit({.result = add, .event = add, .decision = add}, position.sequence);
}

void ResultReader::State::summarize(const ExperimentReader& reader) {
  const TuneConfig& tune = options.tune_config;
  summary = {.name = directory.filename(),
             .trainable = info.trainable,
             .state = reader.finished()     ? ExperimentState::finished
                      : reader.controller() ? ExperimentState::running
                                            : ExperimentState::interrupted,
             .controller = reader.controller().value_or(""),
             .options = Config(stored.dict()),
             .metric = tune.metric.name,
             .mode = tune.mode,
             .started = histories.first_time(),
             .last_event = histories.last_time(),
             .running_seconds = histories.running_time().seconds_at(histories.last_time()),
             .sessions = histories.running_time().sessions(),
             .stop_reason = histories.stop_reason()};
  summary.is_paused = summary.state == ExperimentState::running && histories.running_time().is_paused();
}

Result ResultReader::State::result_of(ExperimentReader& reader, std::size_t index) const {
  const store::TrialRow& row = rows[index];
  const TrialHistory& history = histories.trials()[index];
  Result result{.trial_id = row.trial_id,
                .status = status_of(row.status, runs),
                .config = Config(base::parse_json(row.config, "the config of trial " + row.trial_id).dict()),
                .metrics = metrics(reader, history.last_result),
                .path = directory / row.directory,
                .drawn_config = history.drawn_config,
                .exploits = history.exploits,
                .attempts = row.attempt,
                .failures = history.failures,
                .rows = std::make_shared<const detail::ResultRows>(
                    detail::ResultRows{history.results, history.donor_results, copy})};
  if (result.status == TrialStatus::error) result.error = row.error;
  result.sampled = variants.sampled(static_cast<std::int64_t>(index), result.drawn_config);
  for (std::size_t i = 0; i < result.exploits.size(); ++i) {
    ExploitRecord& exploit = result.exploits[i];
    exploit.training_iteration = iteration(reader, history.before[i]);
    exploit.donor_iteration = iteration(reader, history.donor_results[i]);
    exploit.donor = rows[history.donors[i]].trial_id;
    exploit.checkpoint = directory / exploit.checkpoint;
  }
  return result;
}

void ResultReader::State::add_checkpoints(ExperimentReader& reader, Result& result, std::size_t index) const {
  const auto checkpoint = [&](const CheckpointName& name) {
    return Checkpoint::from_directory(directory / rows[name.trial].directory /
                                      checkpoint::checkpoint_name(static_cast<std::int64_t>(name.number)));
  };
  const TrialHistory& history = histories.trials()[index];
  if (history.latest_checkpoint) result.checkpoint = checkpoint(*history.latest_checkpoint);
  // Existing checkpoints are those that retention keeps, and some that other trials may continue from.
  checkpoint::CheckpointRegistry registry(options.run_config.checkpoint_config);
  std::map<checkpoint::CheckpointId, CheckpointName> names;
  for (const CheckpointName& name :
       std::ranges::equal_range(histories.existing_checkpoints(), index, {}, &CheckpointName::trial)) {
    if (name.number >= history.checkpoints.size()) continue;  // reported too late, by replaced decisions
    names.emplace(registry.add(0, 0, "", metrics(reader, history.checkpoints[name.number].result)), name);
  }
  if (names.empty()) return;
  for (const checkpoint::CheckpointId id : registry.kept(0))
    result.best_checkpoints.emplace_back(checkpoint(names.at(id)), registry.get(id).metrics);
}

ResultReader::ResultReader(fs::path directory, std::shared_ptr<const fs::path> copy)
    : directory_(std::move(directory)), copy_(std::move(copy)) {}
ResultReader::ResultReader(ResultReader&&) noexcept = default;
ResultReader::~ResultReader() = default;

void ResultReader::read(ExperimentReader::Check check) {
  const fs::path plain = fs::canonical(directory_);  // resolves links, so that the experiment keeps its name
  std::unique_ptr<State> state = std::move(state_);
  ExperimentReader reader(plain, check);
  if (state == nullptr || state->directory != plain || !state->fits(reader)) {
    state = std::make_unique<State>(reader, plain, copy_);
    ++generation_;
  }
  state->read(reader);
  state_ = std::move(state);
}

ResultGrid ResultReader::results() const& { return {state_->directory, state_->results, state_->summary}; }
ResultGrid ResultReader::results() && {
  const std::unique_ptr<State> state = std::move(state_);
  return {state->directory, std::move(state->results), std::move(state->summary)};
}

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
  ResultReader reader(directory, std::move(copy));
  reader.read(check);
  return std::move(reader).results();
}

}  // namespace cadre::tune
