// Lookup of experiments and trials named on the command line.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cadre/tune/result.h"
#include "control/objective.h"

namespace cadre::cli {

struct Found {
  std::filesystem::path directory;
  // Keeps a copy of a published run; its directory is removed with the last pointer. Empty for a local directory.
  std::shared_ptr<const std::filesystem::path> copy = {};
};
// Finds the directory of an experiment or a training run: `name` is its path, its name in the default storage, or a
// URI, of which it makes a local copy. Throws NotFound, naming the places searched.
Found find_directory(const std::string& name);
// Returns the name of an experiment's directory or file for messages: its URI if it is in such a copy or its files are
// only in a storage, else the path.
std::string place_text(const std::filesystem::path& path);
// Opens an experiment. Throws InvalidArgument for a training run, and StorageError.
tune::ResultGrid open_experiment(const std::string& name);
// Opens an experiment that was found, which is no training run.
tune::ResultGrid open_experiment(const Found& found);

// Returns the trial with an id or a number: "00003", "3". Throws NotFound, naming the range of ids.
const tune::Result& find_trial(const tune::ResultGrid& grid, const std::string& name);

// Returns the requested metric and mode ("max" or "min"); empty means the experiment's. Throws InvalidArgument, naming
// the options to give, if the metric or its mode is not known.
control::Direction direction_of(const tune::ExperimentSummary& summary, const std::string& metric,
                                const std::string& mode);
// Returns the metrics of texts "loss:min", "accuracy:max", or the experiment's without its mode. Throws
// InvalidArgument, naming what to write, if a direction is not known.
std::vector<Objective> objectives_of(const tune::ExperimentSummary& summary, const std::vector<std::string>& texts);

}  // namespace cadre::cli
