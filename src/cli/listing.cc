#include "cli/listing.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "cadre/error.h"
#include "cadre/tune/study.h"
#include "cli/documents.h"
#include "cli/find.h"
#include "publish/restore.h"
#include "store/read_store.h"
#include "tune/console/trial_table.h"

namespace cadre::cli {
namespace fs = std::filesystem;
namespace {

constexpr int kDeepest = 8;  // levels below the directory

bool is_listed(const fs::path& directory) {
  try {
    return store::has_store(directory) || tune::Study::exists(directory);
  } catch (const StorageError&) {
    return true;  // there may be one: look_at() says why it cannot be read
  }
}

// Returns true for the name of a directory that is being made, by a restore from a storage.
bool is_unfinished(const fs::path& directory) { return directory.filename().native().starts_with(".cadre_"); }

// Adds the directories of experiments and studies below a directory, except those inside one. Does not follow links,
// and passes over what is being made, cannot be read or is deleted meanwhile.
void find_experiments(const fs::path& directory, int depth, std::vector<fs::path>& found) {
  std::error_code gone;
  for (fs::directory_iterator it(directory, gone); it != fs::directory_iterator(); it.increment(gone)) {
    std::error_code unreadable;
    if (!it->is_directory(unreadable) || it->is_symlink(unreadable) || is_unfinished(it->path())) continue;
    if (is_listed(it->path())) {
      found.push_back(it->path());
    } else if (depth < kDeepest) {
      find_experiments(it->path(), depth + 1, found);
    }
  }
}

// Returns nullptr if the experiment has no metric, or no trial has reported it yet.
const tune::Result* best_of(const tune::ResultGrid& grid) {
  try {
    return &grid.get_best_result();
  } catch (const InvalidArgument&) {
    return nullptr;
  } catch (const NotFound&) {
    return nullptr;
  }
}

}  // namespace

std::vector<fs::path> find_experiments(const fs::path& directory) {
  std::error_code unreadable;
  if (!fs::is_directory(directory, unreadable)) throw NotFound("there is no directory " + directory.string());
  if (is_listed(directory)) return {directory};
  std::vector<fs::path> found;
  find_experiments(directory, 1, found);
  return found;
}

Listed listed_as(std::string name, const TrainingRun& run) {
  const std::size_t reports = run.result.metrics_history.size();
  Listed listed{.name = std::move(name),
                .state = run.state,
                .trials = fmt::format("run, {} report{}", reports, reports == 1 ? "" : "s")};
  listed.summary.last_event = run.last_event;
  listed.summary.state = run.state == "finished"  ? tune::ExperimentState::finished
                         : run.state == "running" ? tune::ExperimentState::running
                                                  : tune::ExperimentState::interrupted;
  listed.summary.controller = run.controller;
  listed.document = document_of(run);
  return listed;
}

Listed listed_as(std::string name, const tune::ResultGrid& grid) {
  Listed listed{.name = std::move(name),
                .summary = grid.summary(),
                .state = state_name(grid.summary()),
                .trials = tune::console::counts_text(tune::console::status_counts(grid)),
                .progress = progress_of(grid),
                .trial_count = grid.size()};
  if (const tune::Result* best = best_of(grid)) {
    listed.best = best->metrics.get<double>(grid.summary().metric);
    listed.best_trial = best->trial_id;
  }
  listed.document = document_of(listed.summary, grid);
  listed.document.emplace_back("best", listed.best ? Value(*listed.best) : Value());
  listed.document.emplace_back("best_trial", listed.best ? Value(listed.best_trial) : Value());
  listed.document.emplace_back("error", Value());
  return listed;
}

Listed listed_as_unreadable(std::string name, const std::string& place, const std::string& error) {
  Listed listed{.name = std::move(name), .error = error};
  listed.document = {{"name", fs::path(place).filename().string()}, {"path", place}, {"error", error}};
  return listed;
}

Listed look_at(const fs::path& path, std::string name) {
  try {
    if (is_training_run(path)) return listed_as(std::move(name), read_training_run(path));
    return listed_as(std::move(name), tune::ResultGrid::from_directory(path));
  } catch (const std::runtime_error& error) {  // of a file system, too: a directory may be removed meanwhile
    std::error_code gone;
    const fs::path place = fs::canonical(path, gone);
    return listed_as_unreadable(std::move(name), place_text(gone ? path : place), error.what());
  }
}

std::string name_below(const fs::path& path, const fs::path& directory) {
  return path == directory ? fs::canonical(path).filename() : path.lexically_relative(directory);
}

std::vector<Listed> look_below(const fs::path& directory) {
  std::vector<Listed> experiments;
  for (const fs::path& path : find_experiments(directory))
    experiments.push_back(look_at(path, name_below(path, directory)));
  return experiments;
}

std::vector<std::string> find_published(const storage::Uri& folder) {
  std::vector<std::string> names;
  for (const storage::StoredFile& file : storage::open_storage(folder)->list("")) {
    const fs::path path = file.name;
    if (path.filename() == publish::kManifestFile) names.push_back(path.parent_path());
  }
  return names;
}

Listed look_at(const storage::Uri& uri, std::string name) {
  try {
    return look_at(*publish::reading_copy(uri), name);
  } catch (const Error& error) {
    return listed_as_unreadable(std::move(name), to_string(uri), error.what());
  }
}

std::vector<Listed> look_below(const storage::Uri& folder) {
  std::vector<Listed> experiments;
  for (const std::string& name : find_published(folder))
    experiments.push_back(look_at(name.empty() ? folder : folder / name, name));
  return experiments;
}

}  // namespace cadre::cli
