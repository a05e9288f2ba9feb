// Recovery of an interrupted experiment from its store: its state, its result files and its directory.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "control/replay.h"
#include "control/work_place.h"
#include "store/experiment_store.h"
#include "tune/experiment.h"
#include "tune/loggers/result_files.h"
#include "tune/running_time.h"
#include "tune/snapshots.h"

namespace cadre::tune {

struct Recovered : control::Recovered {
  bool diverged = false;  // true: decisions differ from those recorded
};

struct RecoveryOptions {
  bool allow_divergence = false;
  bool extends = false;  // true: an extension follows, which may continue trials that have ended
};

// Loads the last snapshot and feeds the experiment the events recorded after it, or all events if there is no usable
// snapshot. Everything in `subject` must be new. Every decision must match the recorded one: the first that does not
// throws StorageError, unless `allow_divergence` makes the new decisions from there on replace the recorded ones.
// Sets directories aside that look like checkpoints but are not in the store.
Recovered recover(store::ExperimentStore& store, Snapshots& snapshots, const Snapshots::Subject& subject,
                  const control::WorkPlace& work_place, const RecoveryOptions& options);

}  // namespace cadre::tune
