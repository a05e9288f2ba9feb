// The user's options of a training run: their checks, and their form in the store.
#pragma once

#include <string>

#include "cadre/train.h"

namespace cadre::train {

// Everything that a run is started with, so that it can be continued from its directory alone.
struct Description {
  Loop loop = {};
  std::string backend = {};  // worker/group_backend.h; empty: none
  Config backend_options = {};
  TrainerOptions options = {};  // without run_config's name and storage_path
};

// Fills in the direction of the checkpoints' score, which may be given in either of two options.
void resolve(TrainerOptions& options);

// Throws InvalidArgument with all faults in one message, one per line, each with the name of the option. Objects of a
// `new_run` must be held by this process.
void check_options(const Description& description, bool new_run);

Dict describe(const Description& description);
// Reads the form that describe() returns; its kind may be missing. Throws InvalidArgument with the path to what does
// not fit.
Description to_description(const Value& form);
// Reads the result of describe(); `source` names it in messages. Throws StorageError if it does not describe a
// training run.
Description parse_description(const Value& stored, const std::string& source);

}  // namespace cadre::train
