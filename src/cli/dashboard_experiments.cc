#include "cli/dashboard_experiments.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cadre/error.h"
#include "cadre/tune/study.h"
#include "cli/find.h"
#include "cli/listing.h"
#include "cli/report_document.h"
#include "cli/training_run.h"
#include "control/objective.h"
#include "publish/restore.h"
#include "report/document.h"
#include "store/experiment_lock.h"
#include "store/read_store.h"
#include "tune/results/result_reader.h"

namespace cadre::cli {
namespace fs = std::filesystem;
namespace {

using dashboard::Place;
using dashboard::Reading;

// A file system may give two writes in a row the same time. A file is looked at again once it is older than this.
constexpr double kSameTimeSeconds = 1;

double seconds_of(const timespec& time) {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

dashboard::Stamp stamp_of(const fs::path& directory) {
  std::string text;
  double bytes = 0;
  double latest = 0;
  for (const std::string name : {store::kStoreFileName, "experiment.db-wal", "study.jsonl"}) {
    struct stat status = {};
    if (::stat((directory / name).c_str(), &status) != 0) {
      text += "-;";
      continue;
    }
    text += fmt::format("{}:{}:{}.{};", status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
    bytes += static_cast<double>(status.st_size);
    latest = std::max(latest, seconds_of(status.st_mtim));
  }
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  if (std::abs(now.count() - latest) < kSameTimeSeconds) text += "recent;";
  bool is_running = false;
  try {
    is_running = store::ExperimentLock::holder(directory).has_value();
  } catch (const Error&) {  // reading it says why
    text += "?";
  }
  if (is_running) text += "runs";
  return {std::move(text), bytes, is_running};
}

Dict entry_of(const Listed& listed) {
  Dict entry{{"name", listed.name}, {"kind", listed.error.empty() ? "experiment" : "unreadable"}};
  for (const auto& [key, value] : listed.document) {
    if (key != "name" && key != "options" && key != "config" && key != "metrics" && key != "checkpoints" &&
        key != "controller") {
      if (key == "kind") {
        entry[1].second = value;
      } else {
        entry.emplace_back(key, value);
      }
    }
  }
  const auto or_null = [](const auto& optional) { return optional ? Value(*optional) : Value(); };
  entry.emplace_back("paused", listed.summary.is_paused);
  entry.emplace_back("progress", Dict{{"trials", listed.progress.trials},
                                      {"ended", listed.progress.ended},
                                      {"done", or_null(listed.progress.done)},
                                      {"seconds_left", or_null(listed.progress.seconds_left)}});
  return entry;
}

// Returns true for the directory of an experiment that a controller runs, so that it grows.
bool is_growing(const std::string& location) {
  return !storage::is_uri(location) && store::ExperimentLock::holder(location) && !is_training_run(location);
}

// Returns the entry of a training run: with the metric that ranks its checkpoints and the best value of it, or else the
// first metric of its last report and the value there.
Dict entry_of(const std::string& name, const TrainingRun& run) {
  Dict entry = entry_of(listed_as(name, run));
  const tune::ResultGrid results = as_experiment(run);
  std::string metric = results.summary().metric;
  const std::optional<Mode> mode = results.summary().mode;
  Value best, latest;
  if (!metric.empty() && mode) {
    const auto scope = *mode == Mode::max ? tune::Scope::max : tune::Scope::min;
    if (const std::optional<double> found = results.scores(metric, scope).front()) best = *found;
  } else {
    const auto is_number = [](const auto& one) { return one.second.is_number(); };
    const auto first = std::ranges::find_if(run.result.metrics.dict(), is_number);
    if (metric.empty() && first != run.result.metrics.dict().end()) metric = first->first;
    if (const Value* value = run.result.metrics.find(metric); value != nullptr && value->is_number()) latest = *value;
  }
  entry.emplace_back("metric", metric.empty() ? Value() : Value(metric));
  entry.emplace_back("mode", mode ? Value(control::to_string(*mode)) : Value());
  entry.emplace_back("best", std::move(best));
  entry.emplace_back("latest", std::move(latest));
  return entry;
}

}  // namespace

dashboard::Found DashboardExperiments::find() {
  dashboard::Found found;
  std::set<std::string> known;
  for (const std::string& root : roots_) {
    dashboard::Found below;
    try {
      find_below(root, below);
      if (storage::is_uri(root)) latest_[root] = below.places;
    } catch (const std::exception& error) {  // std::filesystem's too: the folder may vanish meanwhile
      found.faults.emplace_back(error.what());
      // A storage that does not answer still has its experiments.
      if (storage::is_uri(root)) below.places = latest_[root];
    }
    for (Place& place : below.places) {
      if (known.insert(place.location).second) found.places.push_back(std::move(place));
    }
  }
  std::erase_if(growing_, [&](const auto& one) { return !known.contains(one.first); });
  return found;
}

void DashboardExperiments::find_below(const std::string& root, dashboard::Found& found) const {
  const bool is_one = roots_.size() == 1;
  const auto add = [&](std::string location, const std::string& name, const std::string& folder) {
    found.places.push_back({std::move(location), is_one || folder.empty() ? name : folder + "/" + name});
  };
  if (storage::is_uri(root)) {
    const storage::Uri folder = storage::parse_uri(root);
    for (const std::string& name : find_published(folder)) {
      const storage::Uri uri = name.empty() ? folder : folder / name;
      add(to_string(uri), name.empty() ? name_of(uri) : name, name.empty() ? "" : shown(folder));
    }
    return;
  }
  const fs::path directory = fs::canonical(root);
  for (const fs::path& path : find_experiments(directory))
    add(path.string(), name_below(path, directory), path == directory ? "" : root);
}

storage::Storage& DashboardExperiments::storage_of(const std::string& uri) {
  std::unique_ptr<storage::Storage>& storage = storages_[uri];
  if (!storage) storage = storage::open_storage(storage::parse_uri(uri));
  return *storage;
}

dashboard::Stamp DashboardExperiments::stamp(const Place& place) {
  if (!storage::is_uri(place.location)) return stamp_of(place.location);
  try {
    return stamps_[place.location] = {storage_of(place.location).version_of(publish::kManifestFile).value_or("-")};
  } catch (const Error& error) {
    dashboard::Stamp& latest = stamps_[place.location];
    if (latest.text.empty()) latest.text = error.what();  // reading it says why, too
    return latest;
  }
}

bool DashboardExperiments::is_remote(const Place& place) { return storage::is_uri(place.location); }

Reading DashboardExperiments::read(const Place& place, bool with_document) {
  std::string reason;
  try {
    const bool is_known = growing_.contains(place.location);
    Reading reading =
        is_known || is_growing(place.location) ? read_growing(place, with_document) : read_whole(place, with_document);
    checked_.insert(place.location);
    return reading;
  } catch (const std::exception& error) {
    reason = error.what();
  }
  checked_.erase(place.location);
  growing_.erase(place.location);
  return {.entry = entry_of(listed_as_unreadable(place.name, place.location, reason)),
          .document = report::unreadable(place.name, reason)};
}

Reading DashboardExperiments::read_whole(const Place& place, bool with_document) {
  const Found found = find_directory(place.location);
  Reading reading;
  if (is_training_run(found.directory)) {
    const TrainingRun run = read_training_run(found.directory);
    reading.entry = entry_of(place.name, run);
    if (with_document) reading.document = report_document(run, found.directory);
    return reading;
  }
  const tune::ResultGrid grid = tune::Study::exists(found.directory)
                                    ? tune::ResultGrid::from_directory(found.directory)
                                    : tune::read_results(found.directory, check_of(place), found.copy);
  reading.entry = entry_of(listed_as(place.name, grid));
  if (with_document) reading.document = report_document(grid);
  return reading;
}

Reading DashboardExperiments::read_growing(const Place& place, bool with_document) {
  Growing& growing = growing_.try_emplace(place.location, place.location).first->second;
  growing.results.read(check_of(place));
  const tune::ResultGrid grid = growing.results.results();
  Reading reading;
  reading.entry = entry_of(listed_as(place.name, grid));
  if (!with_document || std::exchange(growing.generation, growing.results.generation()) != growing.results.generation())
    growing.curves = {};
  if (with_document) reading.document = report_document(grid, growing.curves);
  reading.reads_on = grid.summary().state == tune::ExperimentState::running;
  if (!reading.reads_on) growing_.erase(place.location);
  return reading;
}

store::ExperimentReader::Check DashboardExperiments::check_of(const Place& place) const {
  using Check = store::ExperimentReader::Check;
  return checked_.contains(place.location) && !storage::is_uri(place.location) ? Check::rows : Check::whole;
}

}  // namespace cadre::cli
