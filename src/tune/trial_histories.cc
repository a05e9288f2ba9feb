#include "tune/trial_histories.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "base/json.h"
#include "cadre/error.h"

namespace cadre::tune {
namespace {

// After these a report of the trial's worker comes too late to count (see Experiment).
constexpr std::array<std::string_view, 6> kStopsWorker{"exploit", "end", "fail", "kill", "set_aside", "unpark"};
constexpr std::array<std::string_view, 3> kLastWords{"function_returned", "function_threw", "worker_ended"};

Value parse(const store::DecisionRow& row) {
  return base::parse_json(row.data, "a decision of kind " + row.kind + " in the store");
}

}  // namespace

TrialHistories::TrialHistories(const std::vector<store::TrialRow>& trials,
                               const std::vector<store::CheckpointRow>& checkpoints)
    : histories_(trials.size()), workers_(trials.size()) {
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (trials[i].trial != static_cast<std::int64_t>(i))
      throw StorageError("the store lists trial " + trials[i].trial_id + " where trial " + std::to_string(i) +
                         " should be: it was changed by another program");
    by_directory_.emplace(trials[i].directory, i);
  }
  for (const store::CheckpointRow& checkpoint : checkpoints) existing_.push_back(name_of(checkpoint.directory));
  std::ranges::sort(existing_);
}

void TrialHistories::see(double time) {
  if (first_time_ == 0) first_time_ = time;
  last_time_ = std::max(last_time_, time);
  running_time_.see(time);
}

void TrialHistories::add(const store::ResultRow& row) {
  see(row.time);
  TrialHistory& history = history_of(row.trial);
  const Worker& worker = workers_[static_cast<std::size_t>(row.trial)];
  if (!worker.runs || worker.attempt != row.attempt) return;  // it came too late
  if (!row.checkpoint.empty()) {
    history.checkpoints.push_back({row.sequence, history.latest_checkpoint});
    history.latest_checkpoint = {static_cast<std::size_t>(row.trial), history.checkpoints.size() - 1};
  }
  if (row.repeated) return;
  history.results.push_back(row.sequence);
  history.last_result = row.sequence;
}

void TrialHistories::add(const store::EventRow& row) {
  if (row.kind == "controller_started") {
    running_time_.begin_session(row.time);
    for (Worker& worker : workers_) worker.runs = false;
  }
  see(row.time);
  if (std::ranges::find(kLastWords, row.kind) == kLastWords.end()) return;
  history_of(row.trial);
  Worker& worker = workers_[static_cast<std::size_t>(row.trial)];
  if (worker.attempt == row.attempt) worker.runs = false;
}

void TrialHistories::add(const store::DecisionRow& row) {
  if (row.trial < 0) return;
  TrialHistory& history = history_of(row.trial);
  const auto trial = static_cast<std::size_t>(row.trial);
  if (std::ranges::find(kStopsWorker, row.kind) != kStopsWorker.end()) workers_[trial].runs = false;
  if (row.kind == "retry" || row.kind == "fail") ++history.failures;
  if (row.kind == "make") {
    history.config = history.drawn_config = Config(Config(parse(row).dict()).at("config").dict());
  } else if (row.kind == "launch") {
    workers_[trial] = {Config(parse(row).dict()).get<std::int64_t>("attempt"), true};
  } else if (row.kind == "exploit") {
    exploit(trial, parse(row));
  } else if (row.kind == "lose") {
    // Whoever would have continued from it continues from the newest one of its lineage that exists.
    auto& latest = history.latest_checkpoint;
    do {
      latest = latest ? histories_[latest->trial].checkpoints[latest->number].parent : std::nullopt;
    } while (latest && !std::ranges::binary_search(existing_, *latest));
  } else if (row.kind == "take_up" && Config(parse(row).dict()).get<bool>("anew")) {
    history.latest_checkpoint.reset();
    history.last_result = 0;
  }
}

void TrialHistories::exploit(std::size_t trial, const Value& data) {
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
                       .config = Config(decision.at("config").dict()),
                       .donor_result = histories_[source.trial].checkpoints[source.number].result};
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
  history.last_result = record.donor_result;
  history.latest_checkpoint = source;
  history.exploits.push_back(std::move(record));
}

TrialHistory& TrialHistories::history_of(std::int64_t trial) {
  if (trial < 0 || trial >= static_cast<std::int64_t>(histories_.size()))
    throw StorageError("the store has a row of trial " + std::to_string(trial) + " and no such trial");
  return histories_[static_cast<std::size_t>(trial)];
}

// "<directory of the trial>/checkpoint_000003"
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
