#include "cli/find.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "cadre/error.h"

namespace cadre::cli {
namespace fs = std::filesystem;

fs::path default_storage() {
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0')
    throw NotFound("there is no HOME for the default ~/cadre_results: name a directory");
  return fs::path(home) / "cadre_results";
}

bool holds_experiment(const fs::path& directory) {
  std::error_code unreadable;
  return fs::exists(directory / "experiment.db", unreadable);
}

tune::ResultGrid open_experiment(const std::string& name) {
  if (holds_experiment(name)) return tune::ResultGrid::from_directory(name);
  const bool is_name = !name.empty() && name.find('/') == std::string::npos;
  if (is_name && holds_experiment(default_storage() / name))
    return tune::ResultGrid::from_directory(default_storage() / name);
  std::error_code unreadable;
  throw NotFound(fmt::format(
      "there is no experiment \"{}\": {}{}. `cadre ls <directory>` lists those of a directory", name,
      fs::is_directory(name, unreadable) ? "the directory has no file experiment.db" : "there is no such directory",
      is_name ? ", and none of that name is in " + default_storage().string() : ""));
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
