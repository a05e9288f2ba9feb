// The file of `cadre tune`: an experiment of a program, in TOML. docs/programs.md describes it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cadre/tune/tuner.h"

namespace cadre::cli {

struct TuneFile {
  tune::Program program = {};
  Resources resources = {};  // of each trial
  tune::TunerOptions options = {};
};

// Reads a file. `changes` are further entries, as "scheduler.max_t=9", which replace those of the file; a value that is
// no TOML is text. `command`, unless it is empty, replaces that of the file. Throws InvalidArgument that names the line
// of what is wrong, or NotFound.
TuneFile read_tune_file(const std::filesystem::path& file, const std::vector<std::string>& changes,
                        const std::vector<std::string>& command);

// Reads what an experiment is extended by: an optional file and changes as above, which have only keys of an Extension
// (cadre/tune/extension.h). Criteria of `stop`, entries of the `space`, and options of a scheduler or searcher without
// a `type` that they lack stay as they are in `present`. Throws as above.
tune::Extension read_extension(const std::filesystem::path& file, const std::vector<std::string>& changes,
                               const tune::TunerOptions& present);

}  // namespace cadre::cli
