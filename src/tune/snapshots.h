// Snapshots of an experiment, so that a restore need not replay all events. Each is written at the end of a
// turn, so it is small: an ended trial is written once, in its own row, by the first snapshot after its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "store/experiment_store.h"
#include "tune/changed_trials.h"
#include "tune/experiment.h"
#include "tune/loggers/result_files.h"
#include "tune/running_time.h"

namespace cadre::tune {

class Snapshots {
 public:
  explicit Snapshots(store::ExperimentStore& store) : store_(store) {}

  // The objects whose state a snapshot holds.
  struct Subject {
    Experiment& experiment;
    ResultFiles& files;
    RunningTime& running_time;
  };
  // Other data that a restore needs.
  struct Place {
    std::int64_t event = 0;                   // last event that the snapshot contains
    std::vector<std::string> deletions = {};  // directories that were to be deleted, relative to the experiment's
  };

  // Returns the trials that may have changed since the last snapshot.
  const std::set<TrialIndex>& changed_trials() const { return changed_.trials(); }
  // Removes the last snapshot from the store.
  void forget();

  // Records an event of the experiment and the actions that followed from it.
  void add(const Event& event, const Actions& actions);
  // Returns true if replaying the events since the last snapshot would take as long as writing a new one.
  bool due(const Experiment& experiment) const;

  // Writes a snapshot, in its own transaction, if anything has happened since the last one. The files must be flushed.
  void take(const Subject& subject, const Place& place);
  // Brings the subject to the state of the last snapshot. Returns nothing, and changes nothing, if there is none.
  // Throws an Error if it cannot be used: it is from another version of Cadre, or a result file has changed. The
  // subject's state is then unspecified. `lost_power`: also checks the files of ended trials, which may have been cut.
  std::optional<Place> load(const Subject& subject, bool lost_power);

 private:
  void put_ended_trials(const Subject& subject);

  store::ExperimentStore& store_;
  ChangedTrials changed_;
  std::size_t events_ = 0;      // since the last snapshot
  std::size_t last_bytes_ = 0;  // size of the last snapshot
};

}  // namespace cadre::tune
