// Brings an experiment that was interrupted to where its store says that it was: its state, its result files, and what
// lies in its directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "store/experiment_store.h"
#include "tune/experiment.h"
#include "tune/loggers/result_files.h"
#include "tune/running_time.h"
#include "tune/snapshots.h"

namespace cadre::tune {

struct Recovered {
  std::int64_t last_event = 0;  // that the store has
  // That the store lists, and that are not there any more, or damaged.
  std::vector<run::CheckpointId> lost_checkpoints = {};
  // That a loss of power could still take, and their directories inside the experiment's.
  std::vector<std::pair<run::CheckpointId, std::filesystem::path>> unsealed_checkpoints = {};
  bool diverged = false;                // what was decided is not what the store had before
  std::vector<std::string> notes = {};  // for the person who watches, a line each
};

// Loads the last snapshot and feeds the experiment the events that were recorded after it, or all where there is no
// snapshot that can be used. Everything in `subject` must be new. Every decision must come out as it was recorded: the
// first that does not throws StorageError, unless `allow_divergence` makes what follows from it count instead.
// Directories that are no checkpoints of the store are removed. `directory` is the experiment's.
Recovered recover(store::ExperimentStore& store, Snapshots& snapshots, const Snapshots::Subject& subject,
                  const std::filesystem::path& directory, bool allow_divergence);

}  // namespace cadre::tune
