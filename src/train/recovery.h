// Brings a run that was interrupted to where its store says that it was, and its directory to what the store lists.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "store/experiment_store.h"
#include "train/run.h"

namespace cadre::train {

struct Recovered {
  std::int64_t last_event = 0;  // that the store has
  // That the store lists, and that are not there any more, or damaged.
  std::vector<run::CheckpointId> lost_checkpoints = {};
  std::vector<CheckpointNumber> lost_uploads = {};  // pending ones of which something is missing, or may be damaged
  // That a loss of power could still take, and their directories inside the run's.
  std::vector<std::pair<run::CheckpointId, std::filesystem::path>> unsealed_checkpoints = {};
  std::vector<std::string> notes = {};  // for the person who watches, a line each
};

// What lies in a run's directory and belongs to no checkpoint, committed or pending: what ranks or the controller were
// about to report, commit or delete. Names in it.
std::vector<std::string> leftovers(const Run& run, const std::filesystem::path& directory);

// Is told of an event, when it happened (seconds since 1970), and what followed from it.
using Witness = std::function<void(const Event& event, const Actions& actions, double time)>;

// Feeds a new Run the events that were recorded. Every decision must come out as it was recorded: the first that does
// not throws StorageError. Directories that are no checkpoints of the store are removed.
Recovered recover(store::ExperimentStore& store, Run& run, const std::filesystem::path& directory,
                  const Witness& witness);

}  // namespace cadre::train
