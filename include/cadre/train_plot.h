/// \file
/// A training run over time as a picture.
#pragma once

#include <filesystem>
#include <string>

namespace cadre::train {

/// An SVG document with the run's worker groups, its checkpoints on their way, and its validations over time, as its
/// store has them; a group or a validation that has failed has a colour of its own. A run may be going on. Throws
/// NotFound where there is no training run in the directory, and StorageError for a store that is damaged.
std::string timeline_svg(const std::filesystem::path& directory);

/// The same into a file, which is replaced in one step. Throws StorageError, too, when it cannot be written.
void write_timeline_svg(const std::filesystem::path& directory, const std::filesystem::path& file);

}  // namespace cadre::train
