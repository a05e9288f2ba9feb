#include "tune/snapshots.h"

#include "base/archive.h"
#include "base/json.h"
#include "cadre/error.h"

namespace cadre::tune {
namespace {

// Replaying so many events takes some hundredths of a second.
constexpr std::size_t kFewestEvents = 2048;

}  // namespace

void Snapshots::see(const Event& event, const Actions& actions) {
  changed_.see(event, actions);
  ++events_;
}

bool Snapshots::due(const Experiment& experiment) const {
  return events_ >= kFewestEvents + experiment.live_trials().size() + experiment.checkpoint_registry().size();
}

void Snapshots::take(const Subject& subject, const Place& place) {
  if (events_ == 0) return;
  put_ended_trials(subject);
  const Dict state{{"experiment", subject.experiment.save()},
                   {"files", base::SaveArchive::to_value(subject.files.stamp())},
                   {"running_time", base::SaveArchive::to_value(subject.running_time)},
                   {"deletions", List(place.deletions.begin(), place.deletions.end())}};
  store_.put_snapshot(place.event, base::to_json(state));
  store_.commit();
  changed_.forget();
  events_ = 0;
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
    const Dict state{{"trial", subject.experiment.save_trial(trial)}, {"files", subject.files.sizes_of_ended(trial)}};
    store_.put(store::EndedTrialRow{trial, base::to_json(state)});
  }
}

std::optional<Snapshots::Place> Snapshots::load(const Subject& subject, bool lost_power) {
  const std::optional<store::Snapshot> snapshot = store_.last_snapshot();
  if (!snapshot) return std::nullopt;
  const Config saved(base::parse_json(snapshot->state, "the snapshot").dict());
  Place place{.event = snapshot->sequence, .deletions = saved.get<std::vector<std::string>>("deletions")};
  Experiment& experiment = subject.experiment;
  store::EndedTrials ended = store_.ended_trials();
  experiment.load(saved.at("experiment").dict(), [&](TrialIndex trial) {
    const std::string source = "the end of trial " + std::to_string(trial) + " in the store";
    const Config state(base::parse_json(ended.next(trial), source).dict());
    const Dict* sizes = lost_power ? &state.at("files").dict() : nullptr;
    if (!subject.files.resume_ended(experiment.trials().at(trial), sizes))
      throw StorageError("result files of trial " + std::to_string(trial) + " are not as they were written");
    return state.at("trial");
  });
  ResultFiles::Stamp stamp;
  base::LoadArchive::load(saved.at("files"), stamp);
  if (!subject.files.resume(stamp)) throw StorageError("result files are not as they were written");
  base::LoadArchive::load(saved.at("running_time"), subject.running_time);
  events_ = 0;
  changed_.forget();
  return place;
}

}  // namespace cadre::tune
