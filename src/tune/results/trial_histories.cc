#include "tune/results/trial_histories.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "cadre/error.h"
#include "control/event_rows.h"
#include "tune/decision_kind.h"
#include "tune/journal.h"

namespace cadre::tune {
namespace {

// Returns true if the trial's worker sends nothing after the event.
bool is_last_word(const store::EventRow& row) {
  return row.kind == control::event_kind<FunctionReturned>() || row.kind == control::event_kind<FunctionThrew>() ||
         row.kind == control::event_kind<WorkerDeclined>() || row.kind == control::event_kind<WorkerEnded>();
}

DecisionKind kind_of(const store::DecisionRow& row) {
  if (const auto kind = cadre::detail::enum_value<DecisionKind>(row.kind)) return *kind;
  throw StorageError("the store has a decision of the unknown kind \"" + row.kind +
                     "\": it is damaged or of a newer Cadre");
}

Value parse(const store::DecisionRow& row) {
  return base::parse_json(row.data, "a decision of kind " + row.kind + " in the store");
}

// Returns true if a retry says that the trial itself has not failed: Experiment::lose_node() counts such losses.
bool is_of_a_lost_node(const Value& retry) { return Config(retry.dict()).find("preemption_failures") != nullptr; }

}  // namespace

void TrialHistories::add(const store::TrialRow& row) {
  if (row.trial != static_cast<std::int64_t>(histories_.size()))
    throw StorageError("the store lists trial " + row.trial_id + " where trial " + std::to_string(histories_.size()) +
                       " should be: it was changed by another program");
  by_directory_.emplace(row.directory, histories_.size());
  histories_.emplace_back();
  workers_.emplace_back();
}

void TrialHistories::set_existing(std::vector<CheckpointName> checkpoints) {
  existing_ = std::move(checkpoints);
  std::ranges::sort(existing_);
}

void TrialHistories::advance_to(double time) {
  if (first_time_ == 0) first_time_ = time;
  last_time_ = std::max(last_time_, time);
  running_time_.advance_to(time);
}

void TrialHistories::add(const store::ResultRow& row) {
  advance_to(row.time);
  TrialHistory& history = history_of(row.trial);
  const Worker& worker = workers_[static_cast<std::size_t>(row.trial)];
  if (!worker.runs || worker.attempt != row.attempt) return;  // too late
  if (!row.checkpoint.empty() && row.checkpoint != kOfferedCheckpoint) {
    history.checkpoints.push_back({row.sequence, history.latest_checkpoint});
    history.latest_checkpoint = {static_cast<std::size_t>(row.trial), history.checkpoints.size() - 1};
  }
  if (row.repeated) return;
  history.results.push_back(row.sequence);
  history.last_result = row.sequence;
}

void TrialHistories::add(const store::EventRow& row) {
  if (row.kind == control::event_kind<ControllerStarted>()) {
    running_time_.begin_session(row.time);
    for (Worker& worker : workers_) worker.runs = false;
  }
  if (row.kind == control::event_kind<ResumeRequested>() || row.kind == control::event_kind<ExperimentInterrupted>())
    running_time_.end_pause(row.time);
  advance_to(row.time);
  if (row.kind == control::event_kind<PauseRequested>()) running_time_.begin_pause();
  if (row.kind == control::event_kind<TimeLost>())
    running_time_.leave_out(
        Config(base::parse_json(row.data, "an event of kind " + row.kind).dict()).get<double>("seconds"));
  if (!is_last_word(row)) return;
  history_of(row.trial);
  Worker& worker = workers_[static_cast<std::size_t>(row.trial)];
  if (worker.attempt == row.attempt) worker.runs = false;
}

void TrialHistories::add(const store::DecisionRow& row) {
  if (row.trial < 0) return;
  TrialHistory& history = history_of(row.trial);
  const auto trial = static_cast<std::size_t>(row.trial);
  const DecisionKind kind = kind_of(row);
  if (stops_worker(kind)) workers_[trial].runs = false;
  switch (kind) {
    case DecisionKind::make:
      history.config = history.drawn_config = Config(Config(parse(row).dict()).at("config").dict());
      break;
    case DecisionKind::launch:
      workers_[trial] = {Config(parse(row).dict()).get<std::int64_t>("attempt"), true};
      break;
    case DecisionKind::resume:
    case DecisionKind::take_over:
    case DecisionKind::save:
      workers_[trial].runs = true;
      break;
    case DecisionKind::exploit:
      record_exploit(trial, parse(row));
      break;
    case DecisionKind::retry:
      if (!is_of_a_lost_node(parse(row))) ++history.failures;
      break;
    case DecisionKind::fail:
      ++history.failures;
      break;
    case DecisionKind::lose:
      lose_latest(history);
      break;
    case DecisionKind::stop_all: {
      const Value data = parse(row);
      for (const auto& [after, reason] : data.dict()) stop_reason_ = reason.get<std::string>();
      break;
    }
    case DecisionKind::resume_errored: {
      stop_reason_.clear();
      const Config data(parse(row).dict());
      // A trial that could not be started has got a config now.
      if (const Value* config = data.find("config")) history.config = history.drawn_config = Config(*config);
      if (!data.get<bool>("anew")) break;
      history.latest_checkpoint.reset();
      history.last_result = 0;
      break;
    }
    case DecisionKind::extend:
      stop_reason_.clear();
      break;
    case DecisionKind::stop_function:
    case DecisionKind::resources:
    case DecisionKind::restart:
    case DecisionKind::pause:
    case DecisionKind::unpark:
    case DecisionKind::end:
    case DecisionKind::stop:
    case DecisionKind::interrupt:
    case DecisionKind::kill:
      break;
  }
}

// Replaces the lost checkpoint by the newest existing one of its lineage.
void TrialHistories::lose_latest(TrialHistory& history) const {
  std::optional<CheckpointName>& latest = history.latest_checkpoint;
  do {
    latest = latest ? histories_[latest->trial].checkpoints[latest->number].parent : std::nullopt;
  } while (latest && !std::ranges::binary_search(existing_, *latest));
}

void TrialHistories::record_exploit(std::size_t trial, const Value& data) {
  const Config decision(data.dict());
  const auto donor_index = decision.get<std::int64_t>("donor");
  const TrialHistory& donor = history_of(donor_index);
  const CheckpointName source = name_of(decision.get<std::string>("checkpoint"));
  if (source.number >= histories_[source.trial].checkpoints.size())
    throw StorageError("the store names a checkpoint " + decision.get<std::string>("checkpoint") +
                       " that nobody reported: it was changed by another program");
  TrialHistory& history = histories_[trial];
  ExploitRecord record{.first_result = history.results.size(),
                       .checkpoint = decision.get<std::string>("checkpoint"),
                       .config = Config(decision.at("config").dict())};
  for (const auto& [key, operation] : decision.at("operations").dict()) {
    const Value* before = donor.config.find(key);
    const Value* after = record.config.find(key);
    record.changes.push_back({.key = key,
                              .before = before == nullptr ? Value() : *before,
                              .operation = operation.is_string() ? operation.get<std::string>() : to_json(operation),
                              .after = after == nullptr ? Value() : *after});
  }
  history.config = record.config;
  history.before.push_back(history.last_result);
  history.donors.push_back(static_cast<std::size_t>(donor_index));
  history.last_result = histories_[source.trial].checkpoints[source.number].result;
  history.donor_results.push_back(history.last_result);
  history.latest_checkpoint = source;
  history.exploits.push_back(std::move(record));
}

TrialHistory& TrialHistories::history_of(std::int64_t trial) {
  if (trial < 0 || trial >= static_cast<std::int64_t>(histories_.size()))
    throw StorageError("the store has a row of trial " + std::to_string(trial) + " and no such trial");
  return histories_[static_cast<std::size_t>(trial)];
}

// Parses "<directory of the trial>/checkpoint_000003".
CheckpointName TrialHistories::name_of(const std::string& directory) const {
  const std::size_t slash = directory.rfind('/');
  const std::size_t digits = directory.rfind('_') + 1;
  const auto trial = by_directory_.find(std::string_view(directory).substr(0, slash));
  std::size_t number = 0;
  const char* end = directory.data() + directory.size();
  const auto [rest, fault] = std::from_chars(directory.data() + digits, end, number);
  if (slash == std::string::npos || trial == by_directory_.end() || fault != std::errc() || rest != end)
    throw StorageError("the store names a checkpoint \"" + directory + "\" that belongs to no trial");
  return {trial->second, number};
}

}  // namespace cadre::tune
