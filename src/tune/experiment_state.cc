// The Experiment as a value, for snapshots. Fields that follow from the options or from other fields are left out.
#include <fmt/format.h>

#include "cadre/error.h"
#include "cadre/stored.h"
#include "tune/experiment.h"
#include "tune/trial_places.h"

// Members that follow from others and from the trial's place.
template <>
inline constexpr auto cadre::kNotStored<cadre::tune::Trial> = member_list("index", "id", "tag", "directory");

namespace cadre::tune {

Value Experiment::save() const {
  Saved saved{.trials = static_cast<TrialIndex>(trials_.size()),
              .scheduler = scheduler_->save(),
              .searcher = searcher_.get().save(),
              .asked = searcher_.state(),
              .stoppers = stoppers_.save(),
              .checkpoints = checkpoints_.state(),
              .rest = state_};
  if (cluster_.may_change()) saved.rest.nodes = cluster_.list();
  for (const TrialIndex trial : live_) saved.live.emplace(trial, save_trial(trial));
  return cadre::to_stored(saved);
}

// There may be very many ended trials, and most of their members have their defaults.
Value Experiment::save_trial(TrialIndex index) const {
  static const Trial standard;
  return cadre::stored_changes(trials_.at(index), standard);
}

void Experiment::load(const Value& value, const std::function<Value(TrialIndex)>& ended_trial) {
  auto saved = cadre::complete_from_value<Saved>(value);
  restore_options(saved.rest);
  if (saved.trials > variants_.size())
    throw InvalidArgument(fmt::format("the state has {} trials of {}", saved.trials, variants_.size()));
  for (TrialIndex index = 0; index < saved.trials; ++index) {
    const auto live = saved.live.extract(index);
    load_trial(index, live.empty() ? ended_trial(index) : live.mapped());
  }
  if (!saved.live.empty()) throw StorageError("a snapshot names trials that it does not have");
  checkpoints_.restore(std::move(saved.checkpoints));
  state_ = std::move(saved.rest);
  const resources::NodeList nodes = std::exchange(state_.nodes, {});
  cluster_ = nodes.is_set() ? resources::Cluster(nodes) : resources::Cluster(state_.resources);
  for (const Trial& trial : trials_) {
    occupy(cluster_, shares_of(trial));
    if (trial.worker == WorkerState::parked) parked_.insert(trial.index);
  }
  std::vector<const Trial*> ended;
  for (const Trial& trial : trials_) {
    if (trial.ended()) ended.push_back(&trial);
  }
  searcher_.load(std::move(saved.asked), saved.searcher, ended);
  scheduler_->load(saved.scheduler);
  stoppers_.load(saved.stoppers);
}

// Adds a trial as it was, first as a new one.
void Experiment::load_trial(TrialIndex index, const Value& saved) {
  auto trial = cadre::from_value<Trial>(saved);
  const bool was_cut_off = trial.was_cut_off;
  Variant variant{.config = trial.config_at_first(), .sampled = trial.sampled};
  Trial& added = add_trial(index, variant);
  trial.index = added.index;
  trial.id = std::move(added.id);
  trial.tag = std::move(added.tag);
  trial.directory = std::move(added.directory);
  added = std::move(trial);
  if (added.ended()) live_.erase(added.index);
  const bool waits = added.status == TrialStatus::pending || added.status == TrialStatus::paused;
  waits ? begin_waiting(added, added.status) : end_waiting(added);
  if (was_cut_off) set_cut_off(added);
  if (added.held) holders_.insert(added.index);
}

}  // namespace cadre::tune
