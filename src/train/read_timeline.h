// The timeline of a training run, from its store: the events are replayed in a Run, and nothing is changed.
#pragma once

#include <filesystem>

#include "train/timeline.h"

namespace cadre::train {

// Returns the worker groups, uploads and validations of a run. Throws NotFound or StorageError if the store cannot be
// read.
Timeline read_timeline(const std::filesystem::path& directory);

}  // namespace cadre::train
