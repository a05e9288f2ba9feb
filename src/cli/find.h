// Experiments and trials as they are named on the command line.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cadre/tune/result.h"

namespace cadre::cli {

// The directory of an experiment or a training run, which is that directory or has that name in the default storage.
// Throws NotFound that says where it was looked for.
std::filesystem::path find_directory(const std::string& name);
// The experiment in it. Throws InvalidArgument for a training run, StorageError.
tune::ResultGrid open_experiment(const std::string& name);

// The trial with an id, or a number: "00003", "3". Throws NotFound that says which there are.
const tune::Result& find_trial(const tune::ResultGrid& grid, const std::string& name);

// The mode that `max` or `min` names; empty for an empty name, which is for the experiment's own.
std::optional<Mode> mode_of(const std::string& name);

}  // namespace cadre::cli
