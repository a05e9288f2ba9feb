#include "cli/find.h"

#include <fmt/format.h>

#include <algorithm>

#include "cadre/error.h"
#include "cadre/tune/study.h"
#include "cli/training_run.h"
#include "publish/restore.h"
#include "storage/remote_directory.h"
#include "store/read_store.h"
#include "store/run_directory.h"
#include "tune/experiment_directory.h"
#include "tune/results/result_reader.h"

namespace cadre::cli {
namespace fs = std::filesystem;

Found find_directory(const std::string& name) {
  if (const auto uri = publish::published_at(name)) {
    auto copy = publish::reading_copy(*uri);
    return {*copy, copy};
  }
  if (store::has_store(name) || tune::Study::exists(name)) return {name};
  const bool is_name = !name.empty() && name.find('/') == std::string::npos;
  if (is_name && store::has_store(store::default_storage_path() / name)) return {store::default_storage_path() / name};
  std::error_code unreadable;
  throw NotFound(
      fmt::format("there is no experiment \"{}\": {}{}. `cadre ls <directory>` lists those of a directory", name,
                  fs::is_directory(name, unreadable) ? std::string("the directory has no file ") + store::kStoreFileName
                                                     : "there is no such directory",
                  is_name ? ", and none of that name is in " + store::default_storage_path().string() : ""));
}

tune::ResultGrid open_experiment(const std::string& name) {
  const Found found = find_directory(name);
  if (is_training_run(found.directory))
    throw InvalidArgument(name + " is a training run and has no trials; `cadre show` shows it");
  return open_experiment(found);
}

tune::ResultGrid open_experiment(const Found& found) {
  if (tune::Study::exists(found.directory)) return tune::ResultGrid::from_directory(found.directory);
  return tune::read_results(found.directory, store::ExperimentReader::Check::whole, found.copy);
}

std::string place_text(const fs::path& path) {
  const bool is_elsewhere = publish::is_in_reading_copy(path) || storage::remote_files(path);
  const auto place = is_elsewhere ? storage::published_place(path) : std::nullopt;
  return place ? storage::to_string(*place) : path.string();
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
  throw NotFound(fmt::format("there is no trial \"{}\" in {}; {}", name, place_text(grid.experiment_path()),
                             grid.size() == 0
                                 ? "it has no trials yet"
                                 : fmt::format("it has {} to {}", grid[0].trial_id, grid[grid.size() - 1].trial_id)));
}

control::Direction direction_of(const tune::ExperimentSummary& summary, const std::string& metric,
                                const std::string& mode) {
  if (metric.empty() && summary.metric.empty())
    throw InvalidArgument(summary.name +
                          " has no metric of its own: name one with --metric, and its direction with --mode");
  const std::string& name = metric.empty() ? summary.metric : metric;
  std::optional<Mode> direction = name == summary.metric ? summary.mode : std::nullopt;
  if (!mode.empty()) direction = mode == "min" ? Mode::min : Mode::max;
  if (!direction)
    throw InvalidArgument(
        fmt::format("\"{}\" is not the metric of {}, so it is not known which of its values are good: give --mode "
                    "min or --mode max too",
                    name, summary.name));
  return {name, *direction};
}

std::vector<Objective> objectives_of(const tune::ExperimentSummary& summary, const std::vector<std::string>& texts) {
  std::vector<Objective> metrics;
  for (const std::string& text : texts) {
    const bool is_min = text.ends_with(":min");
    if (is_min || text.ends_with(":max")) {
      metrics.emplace_back(text.substr(0, text.size() - 4), is_min ? Mode::min : Mode::max);
    } else if (text == summary.metric && summary.mode) {
      metrics.emplace_back(text, summary.mode);
    } else {
      throw InvalidArgument(
          fmt::format("it is not said which values of \"{0}\" are good: write {0}:min or {0}:max", text));
    }
  }
  return metrics;
}

}  // namespace cadre::cli
