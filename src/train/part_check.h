// What can be a checkpoint of a training run: checked in the worker, where an error reaches who has made the mistake,
// and again by the controller, which believes no worker.
#pragma once

#include <filesystem>
#include <string>

#include "train/checkpoint_part.h"
#include "train/checkpoints.h"

namespace cadre::train {

// Says how much of a named checkpoint may exist already.
enum class NameCheck {
  must_be_free,  // nothing
  may_be_begun,  // a directory that is no checkpoint yet, which ranks make together
};
// Throws InvalidArgument where a new checkpoint of the run in a directory cannot have the name: it is none, one of
// Cadre's own, or in use.
void check_checkpoint_name(const std::string& name, const std::filesystem::path& run_directory, NameCheck check);

// Where a directory lies inside the run's, as CheckpointPart::path has it. Throws InvalidArgument where it lies
// elsewhere, is not there, or belongs to the run itself; `doing` begins the message.
std::string path_inside(const std::filesystem::path& run_directory, const std::filesystem::path& directory,
                        const std::string& doing);

// Throws InvalidArgument for what a rank cannot report.
void check_part(const CheckpointPart& part, const std::filesystem::path& run_directory);
// Throws InvalidArgument where another checkpoint has the directory that all ranks together want, or something else.
void check_together(const GroupCheckpoint& checkpoint, const std::filesystem::path& run_directory,
                    const Checkpoints& checkpoints);

}  // namespace cadre::train
