// Snapshots of an experiment: what a restore begins from instead of the first event. Each is written in the middle of
// the controller's turns, so it holds little: trials that have ended are written once, in rows of their own, by the
// first snapshot after their end.
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

  // What a snapshot is of.
  struct Subject {
    Experiment& experiment;
    ResultFiles& files;
    RunningTime& running_time;
  };
  // What else a restore needs to know of it.
  struct Place {
    std::int64_t event = 0;                   // the last one that it contains
    std::vector<std::string> deletions = {};  // directories inside the experiment's that were to be deleted
  };

  // Trials that may have changed since the last one.
  const std::set<TrialIndex>& changed_trials() const { return changed_.trials(); }
  // Removes the last one, so that nobody uses it any more.
  void forget();

  // Takes an event of the experiment and what followed from it.
  void see(const Event& event, const Actions& actions);
  // Whether so much has happened since the last snapshot that it takes as long to read again as a snapshot to write.
  bool due(const Experiment& experiment) const;

  // Writes one, in a transaction of its own, if anything has happened since the last one. The files must be flushed.
  void take(const Subject& subject, const Place& place);
  // Brings the subject to the state of the last one. Empty, and nothing is changed, when there is none. Throws an Error
  // when it cannot be used, and the subject is then anything: it is of another version of Cadre, or a result file is
  // not what it was. Those of ended trials are looked at where `lost_power` says that they may have been cut.
  std::optional<Place> load(const Subject& subject, bool lost_power);

 private:
  void put_ended_trials(const Subject& subject);

  store::ExperimentStore& store_;
  ChangedTrials changed_;
  std::size_t events_ = 0;  // since the last snapshot
};

}  // namespace cadre::tune
