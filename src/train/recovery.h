// Restores an interrupted run to the state in its store, and sets directories aside that the store does not list.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "control/replay.h"
#include "control/work_place.h"
#include "store/experiment_store.h"
#include "train/run.h"

namespace cadre::train {

struct Recovered : control::Recovered {
  std::vector<CheckpointNumber> lost_uploads = {};  // pending checkpoints with parts that are missing or may be damaged
};

// Returns the names of checkpoint-like directories in a run's directory that belong to no committed or pending
// checkpoint: ranks or the controller were about to report, commit or delete them.
std::vector<std::string> leftovers(const Run& run, const control::WorkPlace& work_place);

// Receives an event, its time (seconds since 1970) and the resulting actions.
using Witness = std::function<void(const Event& event, const Actions& actions, double time)>;

// Replays the recorded events in a new Run. Throws StorageError at the first decision that differs from the recorded
// one. Sets directories aside that are not checkpoints of the store.
Recovered recover(store::ExperimentStore& store, Run& run, const control::WorkPlace& work_place,
                  const Witness& witness);

}  // namespace cadre::train
