// Checks of a run's checkpoints: made in the worker, where the error reaches the caller of report(), and again by the
// controller, which does not trust workers.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/checkpoint_part.h"
#include "train/checkpoints.h"

namespace cadre::train {

// How much of a named checkpoint may exist already.
enum class NameCheck {
  must_be_free,  // nothing
  may_be_begun,  // an uncommitted directory, which the ranks fill together
};
// Throws InvalidArgument if a new checkpoint of the run cannot have the name: it is not a valid name, reserved for
// Cadre, or in use.
void check_checkpoint_name(const std::string& name, const std::filesystem::path& run_directory, NameCheck check);

// Returns a directory's path relative to the run's, as in CheckpointPart::path. Throws InvalidArgument if the
// directory lies elsewhere, does not exist, or belongs to the run itself; `doing` begins the message.
std::string path_inside(const std::filesystem::path& run_directory, const std::filesystem::path& directory,
                        const std::string& doing);

// Throws InvalidArgument if a rank cannot report this part.
void check_part(const CheckpointPart& part, const std::filesystem::path& run_directory);
// Throws InvalidArgument if the directory that the ranks agreed on is used by another checkpoint, exists already, or is
// in place and about to be removed. `removals`: directories that are deleted some time later.
void check_together(const GroupCheckpoint& checkpoint, const std::filesystem::path& run_directory,
                    const Checkpoints& checkpoints, const std::vector<std::string>& removals);

}  // namespace cadre::train
