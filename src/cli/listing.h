// The experiments below a directory or a URI, with what lists of them show.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cadre/tune/result.h"
#include "cli/progress.h"
#include "cli/training_run.h"
#include "storage/uri.h"

namespace cadre::cli {

struct Listed {
  std::string name = {};  // relative to the directory
  tune::ExperimentSummary summary = {};
  std::string state = {};
  std::string trials = {};  // "4 TERMINATED, 1 ERROR"
  Progress progress = {};
  std::size_t trial_count = 0;
  std::optional<double> best = {};
  std::string best_trial = {};
  std::string error = {};  // why it cannot be read; empty: it can
  Dict document = {};
};

// Returns the directories of experiments and studies below a directory, or the directory itself, except those inside
// one. Does not follow links, and passes over what cannot be read or is deleted meanwhile. Throws NotFound if there is
// no such directory.
std::vector<std::filesystem::path> find_experiments(const std::filesystem::path& directory);
// Returns the names, relative to the URI, of the runs that are published there. Throws StorageError.
std::vector<std::string> find_published(const storage::Uri& folder);

// Return how an experiment or training run that was read is listed.
Listed listed_as(std::string name, const tune::ResultGrid& grid);
Listed listed_as(std::string name, const TrainingRun& run);
// Returns how one that cannot be read is listed. `place`: its path or URI.
Listed listed_as_unreadable(std::string name, const std::string& place, const std::string& error);

// Return one of them as it is now. Damage is in `error`.
Listed look_at(const std::filesystem::path& path, std::string name);
Listed look_at(const storage::Uri& uri, std::string name);

// Return all of them.
std::vector<Listed> look_below(const std::filesystem::path& directory);
std::vector<Listed> look_below(const storage::Uri& folder);

// Returns the name of an experiment below a directory: relative to it, or its own.
std::string name_below(const std::filesystem::path& path, const std::filesystem::path& directory);

}  // namespace cadre::cli
