// What a user asks of a training run: checked before anything runs, and as the store keeps it.
#pragma once

#include <string>

#include "cadre/train.h"

namespace cadre::train {

// Everything that a run is begun with, so that it can be continued from its directory alone.
struct Description {
  Loop loop = {};
  std::string backend = {};  // run/group_backend.h; empty: none
  Config backend_options = {};
  TrainerOptions options = {};  // without run_config's name and storage_path
};

// Fills in what may be said in two places: the direction of the checkpoints' score.
void resolve(TrainerOptions& options);

// Throws InvalidArgument with all faults in one message, one a line, each with the name of the option. Objects of a
// `new_run` must be held by this process.
void check_options(const Description& description, bool new_run);

Dict describe(const Description& description);
// Reads what describe() made, `source` names it in messages. Throws StorageError for what describes no training run.
Description parse_description(const Value& stored, const std::string& source);

}  // namespace cadre::train
