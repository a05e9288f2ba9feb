#include "tune/snapshots.h"

#include "base/json.h"
#include "cadre/error.h"
#include "cadre/stored.h"

namespace cadre::tune {
namespace {

// Replaying so many events takes some hundredths of a second.
constexpr std::size_t kFewestEvents = 2048;
// So many bytes of a snapshot take about as long to write as one event to replay. A scheduler or searcher may remember
// all trials, so that the sizes of snapshots grow.
constexpr std::size_t kBytesOfAnEvent = 500;

struct SavedSnapshot {
  Value experiment = {};
  ResultFiles::Stamp files = {};
  RunningTime::State running_time = {};
  std::vector<std::string> deletions = {};
};

struct SavedTrial {
  Value trial = {};
  Dict files = {};  // sizes in bytes, by name
};

}  // namespace

void Snapshots::add(const Event& event, const Actions& actions) {
  changed_.add(event, actions);
  ++events_;
}

bool Snapshots::due(const Experiment& experiment) const {
  const std::size_t live = experiment.live_trials().size() + experiment.checkpoint_registry().size();
  return events_ >= kFewestEvents + live + last_bytes_ / kBytesOfAnEvent;
}

void Snapshots::take(const Subject& subject, const Place& place) {
  if (events_ == 0) return;
  put_ended_trials(subject);
  const SavedSnapshot state{.experiment = subject.experiment.save(),
                            .files = subject.files.stamp(),
                            .running_time = subject.running_time.state(),
                            .deletions = place.deletions};
  const std::string text = base::to_json(cadre::to_stored(state).dict());
  store_.put_snapshot(place.event, text);
  store_.commit();
  changed_.forget();
  events_ = 0;
  last_bytes_ = text.size();
}

void Snapshots::forget() {
  store_.remove_snapshot();
  store_.commit();
}

void Snapshots::put_ended_trials(const Subject& subject) {
  for (const TrialIndex trial : changed_.trials()) {
    if (!subject.experiment.trials().at(trial).ended()) {
      store_.remove_ended_trial(trial);
      continue;
    }
    const SavedTrial state{subject.experiment.save_trial(trial), subject.files.sizes_of_ended(trial)};
    store_.put(store::EndedTrialRow{trial, base::to_json(cadre::to_stored(state).dict())});
  }
}

std::optional<Snapshots::Place> Snapshots::load(const Subject& subject, bool lost_power) {
  const std::optional<store::Snapshot> snapshot = store_.last_snapshot();
  if (!snapshot) return std::nullopt;
  last_bytes_ = snapshot->state.size();
  auto saved = cadre::complete_from_value<SavedSnapshot>(base::parse_json(snapshot->state, "the snapshot"));
  Experiment& experiment = subject.experiment;
  store::EndedTrials ended = store_.ended_trials();
  std::vector<std::pair<TrialIndex, Dict>> sizes_of_ended;  // of their files
  experiment.load(saved.experiment, [&](TrialIndex trial) {
    const std::string source = "the end of trial " + std::to_string(trial) + " in the store";
    auto state = cadre::complete_from_value<SavedTrial>(base::parse_json(ended.next(trial), source));
    sizes_of_ended.emplace_back(trial, std::move(state.files));
    return std::move(state.trial);
  });
  for (const auto& [trial, sizes] : sizes_of_ended) {
    if (!subject.files.resume_ended(experiment.trials().at(trial), lost_power ? &sizes : nullptr))
      throw StorageError("result files of trial " + std::to_string(trial) + " are not as they were written");
  }
  if (!subject.files.resume(saved.files)) throw StorageError("result files are not as they were written");
  subject.running_time = RunningTime(saved.running_time, experiment.paused());
  events_ = 0;
  changed_.forget();
  return Place{.event = snapshot->sequence, .deletions = std::move(saved.deletions)};
}

}  // namespace cadre::tune
