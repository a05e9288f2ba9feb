// The Experiment as a value, for snapshots. Fields that follow from the options or from other fields are left out.
#include <fmt/format.h>

#include "cadre/error.h"
#include "cadre/stored.h"
#include "tune/experiment.h"

// Members that add_trial() computes again.
template <>
inline constexpr auto cadre::kNotStored<cadre::tune::Trial> = member_list("index", "id", "tag", "sampled", "directory");

namespace cadre::tune {

Value Experiment::save() const {
  Saved saved{.trials = static_cast<TrialIndex>(trials_.size()),
              .scheduler = scheduler_->save(),
              .stoppers = stoppers_.save(),
              .checkpoints = checkpoints_.state(),
              .rest = state_};
  for (const TrialIndex trial : live_) saved.live.emplace(trial, save_trial(trial));
  return cadre::to_stored(saved);
}

// There may be very many ended trials, and most of their members have their defaults.
Value Experiment::save_trial(TrialIndex index) const {
  static const Value standard = cadre::to_stored(Trial());
  return cadre::stored_changes(trials_.at(index), standard);
}

void Experiment::load(const Value& value, const std::function<Value(TrialIndex)>& ended_trial) {
  auto saved = cadre::complete_from_value<Saved>(value);
  if (saved.trials > variants_.size())
    throw InvalidArgument(fmt::format("the state has {} trials of {}", saved.trials, variants_.size()));
  for (TrialIndex index = 0; index < saved.trials; ++index) {
    add_trial();
    const auto live = saved.live.extract(index);
    load_trial(live.empty() ? ended_trial(index) : live.mapped());
  }
  if (!saved.live.empty()) throw StorageError("a snapshot names trials that it does not have");
  checkpoints_.restore(std::move(saved.checkpoints));
  state_ = std::move(saved.rest);
  resources_ = resources::ResourceLedger(state_.resources);
  for (const Trial& trial : trials_) {
    if (trial.held) resources_.acquire(*trial.held, trial.gpus);
    parked_ += trial.worker == WorkerState::parked ? 1 : 0;
  }
  scheduler_->load(saved.scheduler);
  stoppers_.load(saved.stoppers);
}

// Loads into the trial that was added last.
void Experiment::load_trial(const Value& saved) {
  Trial& added = trials_.back();
  auto trial = cadre::from_value<Trial>(saved);
  trial.index = added.index;
  trial.id = std::move(added.id);
  trial.tag = std::move(added.tag);
  trial.sampled = std::move(added.sampled);
  trial.directory = std::move(added.directory);
  added = std::move(trial);
  if (added.ended()) live_.erase(added.index);
  const bool waits = added.status == TrialStatus::pending || added.status == TrialStatus::paused;
  if (!waits) waiting_.erase(added.index);
  running_ += added.held ? 1 : 0;
}

}  // namespace cadre::tune
