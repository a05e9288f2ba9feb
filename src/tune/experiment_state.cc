// The Experiment as a value, for snapshots. Fields that follow from the options or from other fields are left out.
#include <algorithm>

#include "base/archive.h"
#include "cadre/error.h"
#include "run/resource_fields.h"
#include "tune/experiment.h"

namespace cadre::tune {

using base::Is;

void fields(auto& archive, Is<Failure> auto& failure) {
  archive("cause", failure.cause);
  archive("may_retry", failure.may_retry);
}

// The fields needed of a terminated trial without a worker: there may be very many such trials.
void fields_of_terminated(auto& archive, Is<Trial> auto& trial) {
  archive("status", trial.status);
  archive("config", trial.config);
  archive("error", trial.error);
  archive("attempt", trial.attempt);
  archive("time_total_s", trial.time_total_s);
  archive("step", trial.step);
  archive("last_result", trial.last_result);
  archive("latest_checkpoint", trial.latest_checkpoint);
  archive("checkpoints_made", trial.checkpoints_made);
}

// Omits the fields that add_trial() computes again.
void fields(auto& archive, Is<Trial> auto& trial) {
  fields_of_terminated(archive, trial);
  archive("failures", trial.failures);
  archive("restore_failures", trial.restore_failures);
  archive("futile_attempts", trial.futile_attempts);
  archive("backs_off", trial.backs_off);
  archive("worker", trial.worker);
  archive("needs", trial.needs);
  archive("holds_resources", trial.holds_resources);
  archive("held", trial.held);
  archive("gpus", trial.gpus);
  archive("parked_since", trial.parked_since);
  archive("started_from", trial.started_from);
  archive("reported_checkpoint", trial.reported_checkpoint);
  archive("offers_checkpoint", trial.offers_checkpoint);
  archive("after_save", trial.after_save);
  archive("takes_over", trial.takes_over);
  archive("restoring", trial.restoring);
  archive("killed_for", trial.killed_for);
}

// A Trial of which only fields_of_terminated() are saved or loaded.
template <class T>
struct Terminated {
  T& trial;
  static void fields(auto& archive, auto& self) { fields_of_terminated(archive, self.trial); }
};

void Experiment::fields(auto& archive, auto& experiment) {
  archive("checkpoints", experiment.checkpoints_);
  archive("resources", experiment.total_);
  archive("workers", experiment.workers_);
  archive("interrupted", experiment.interrupted_);
  archive("failed_fast", experiment.failed_fast_);
  archive("stopping_all", experiment.stopping_all_);
  archive("warned", experiment.warned_);
  archive("pauses", experiment.pauses_);
}

Dict Experiment::save() const {
  List live;
  for (const TrialIndex trial : live_) live.push_back(list(trial, save_trial(trial)));
  return {{"trials", trials_.size()},
          {"live", std::move(live)},
          {"scheduler", scheduler_->save()},
          {"stoppers", stoppers_.save()},
          {"rest", base::SaveArchive::to_value(*this)}};
}

Value Experiment::save_trial(TrialIndex index) const {
  const Trial& trial = trials_.at(index);
  const bool is_over = trial.status == TrialStatus::terminated && trial.worker == WorkerState::none;
  return is_over ? base::SaveArchive::to_value(Terminated<const Trial>{trial}) : base::SaveArchive::to_value(trial);
}

void Experiment::load(const Dict& state, const std::function<Value(TrialIndex)>& ended_trial) {
  const Config parts(state);
  const List& live = parts.at("live").items();
  const auto trials = parts.get<TrialIndex>("trials");
  if (trials > variants_.size())
    throw InvalidArgument("the state has " + std::to_string(trials) + " trials of " + std::to_string(variants_.size()));
  auto next_live = live.begin();
  for (TrialIndex index = 0; index < trials; ++index) {
    add_trial();
    const bool is_live = next_live != live.end() && next_live->items().at(0) == Value(index);
    load_trial(is_live ? (next_live++)->items().at(1) : ended_trial(index));
  }
  if (next_live != live.end()) throw StorageError("a snapshot names trials that it does not have");
  base::LoadArchive::load(parts.at("rest"), *this);
  resources_ = run::ResourceLedger(total_);
  for (const Trial& trial : trials_) {
    if (trial.holds_resources) resources_.acquire(trial.held, trial.gpus);
    parked_ += trial.parked_since > 0 ? 1 : 0;
  }
  scheduler_->load(parts.at("scheduler"));
  stoppers_.load(parts.at("stoppers"));
}

// Loads into the trial that was added last.
void Experiment::load_trial(const Value& saved) {
  Trial& trial = trials_.back();
  if (std::ranges::find(saved.dict(), "worker", &Dict::value_type::first) != saved.dict().end()) {
    base::LoadArchive::load(saved, trial);
  } else {
    Terminated<Trial> over{trial};
    base::LoadArchive::load(saved, over);
  }
  if (trial.ended()) live_.erase(trial.index);
  const bool waits = trial.status == TrialStatus::pending || trial.status == TrialStatus::paused;
  if (!waits) waiting_.erase(trial.index);
  running_ += trial.holds_resources ? 1 : 0;
}

}  // namespace cadre::tune
