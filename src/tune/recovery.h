// Recovery of an interrupted experiment from its store: its state, its result files and its directory.
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
  std::int64_t last_event = 0;  // last one in the store
  // Listed in the store, but missing or damaged.
  std::vector<run::CheckpointId> lost_checkpoints = {};
  // Checkpoints that a loss of power could still damage, and their directories, relative to the experiment's.
  std::vector<std::pair<run::CheckpointId, std::filesystem::path>> unsealed_checkpoints = {};
  bool diverged = false;                // true: decisions differ from those recorded
  std::vector<std::string> notes = {};  // lines for the user
};

// Loads the last snapshot and feeds the experiment the events recorded after it, or all events if there is no usable
// snapshot. Everything in `subject` must be new. Every decision must match the recorded one: the first that does not
// throws StorageError, unless `allow_divergence` makes the new decisions from there on replace the recorded ones.
// Removes directories that look like checkpoints but are not in the store. `directory` is the experiment's.
Recovered recover(store::ExperimentStore& store, Snapshots& snapshots, const Snapshots::Subject& subject,
                  const std::filesystem::path& directory, bool allow_divergence);

}  // namespace cadre::tune
