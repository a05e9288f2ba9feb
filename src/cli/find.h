// Experiments and trials as they are named on the command line.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cadre/tune/result.h"
#include "run/objective.h"

namespace cadre::cli {

struct Found {
  std::filesystem::path directory;
  // Of what is published: the directory goes with the last one.
  std::shared_ptr<const std::filesystem::path> copy = {};
};
// The directory of an experiment or a training run, which is that directory or has that name in the default storage, or
// a copy of what is published at that URI. Throws NotFound that says where it was looked for.
Found find_directory(const std::string& name);
// What a directory or file of an experiment is called for others: its URI, where it lies in such a copy or its files
// are in a storage only.
std::string place_text(const std::filesystem::path& path);
// The experiment in it. Throws InvalidArgument for a training run, StorageError.
tune::ResultGrid open_experiment(const std::string& name);

// The trial with an id, or a number: "00003", "3". Throws NotFound that says which there are.
const tune::Result& find_trial(const tune::ResultGrid& grid, const std::string& name);

// The metric and the mode ("max" or "min") that are asked for; the experiment's where they are empty. Throws
// InvalidArgument that names the options to give, where the metric or its direction is not known.
run::Direction direction_of(const tune::ExperimentSummary& summary, const std::string& metric, const std::string& mode);

}  // namespace cadre::cli
