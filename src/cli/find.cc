#include "cli/find.h"

#include <fmt/format.h>

#include <algorithm>

#include "cadre/error.h"
#include "cli/training_run.h"
#include "run/storage_path.h"
#include "store/read_store.h"
#include "tune/experiment_directory.h"

namespace cadre::cli {
namespace fs = std::filesystem;

fs::path find_directory(const std::string& name) {
  if (tune::holds_experiment(name)) return name;
  const bool is_name = !name.empty() && name.find('/') == std::string::npos;
  if (is_name && tune::holds_experiment(run::default_storage_path() / name)) return run::default_storage_path() / name;
  std::error_code unreadable;
  throw NotFound(
      fmt::format("there is no experiment \"{}\": {}{}. `cadre ls <directory>` lists those of a directory", name,
                  fs::is_directory(name, unreadable) ? std::string("the directory has no file ") + store::kStoreFileName
                                                     : "there is no such directory",
                  is_name ? ", and none of that name is in " + run::default_storage_path().string() : ""));
}

tune::ResultGrid open_experiment(const std::string& name) {
  const fs::path directory = find_directory(name);
  if (is_training_run(directory))
    throw InvalidArgument(directory.string() + " is a training run and has no trials; `cadre show` shows it");
  return tune::ResultGrid::from_directory(directory);
}

const tune::Result& find_trial(const tune::ResultGrid& grid, const std::string& name) {
  const auto same = [&](const tune::Result& trial) {
    const bool digits =
        !name.empty() && std::ranges::all_of(name, [](unsigned char c) { return c >= '0' && c <= '9'; });
    const std::string padded = digits && name.size() < 5 ? std::string(5 - name.size(), '0') + name : name;
    return trial.trial_id == padded;
  };
  const auto found = std::ranges::find_if(grid, same);
  if (found != grid.end()) return *found;
  throw NotFound(fmt::format("there is no trial \"{}\" in {}; {}", name, grid.experiment_path().string(),
                             grid.size() == 0
                                 ? "it has no trials yet"
                                 : fmt::format("it has {} to {}", grid[0].trial_id, grid[grid.size() - 1].trial_id)));
}

std::optional<Mode> mode_of(const std::string& name) {
  if (name.empty()) return std::nullopt;
  return name == "min" ? Mode::min : Mode::max;
}

}  // namespace cadre::cli
