// cadre export --mlflow: an experiment in MLflow's file store.
#include <fmt/format.h>

#include <set>
#include <string>

#include "cli/exports.h"
#include "cli/find.h"
#include "loggers/flat_row.h"
#include "loggers/mlflow_run.h"
#include "loggers/result_keys.h"

namespace cadre::cli {
namespace {

using loggers::MlflowStatus;

MlflowStatus mlflow_status(const tune::Result& trial, tune::ExperimentState state) {
  switch (trial.status) {
    case tune::TrialStatus::terminated:
    case tune::TrialStatus::stopped:
      return MlflowStatus::finished;
    case tune::TrialStatus::error:
      return MlflowStatus::failed;
    case tune::TrialStatus::running:
    case tune::TrialStatus::paused:
      return MlflowStatus::running;
    case tune::TrialStatus::pending:
      break;
  }
  if (trial.num_results() == 0) return MlflowStatus::scheduled;
  return state == tune::ExperimentState::running ? MlflowStatus::running : MlflowStatus::killed;
}

// Returns the paths of the parameters that exploits have changed.
std::vector<std::string> schedule_of(const tune::ResultGrid& grid) {
  std::set<std::string> paths;
  for (const tune::Result& trial : grid) {
    for (const tune::ExploitRecord& exploit : trial.exploits) {
      for (const tune::ExploitRecord::Change& change : exploit.changes) paths.insert(change.key);
    }
  }
  return {paths.begin(), paths.end()};
}

class MlflowExport {
 public:
  MlflowExport(const tune::ResultGrid& grid, std::filesystem::path store) : grid_(grid) {
    place_ = {.store = std::move(store),
              .experiment = grid.summary().name,
              .location = location_of(grid.experiment_path()),
              .schedule = schedule_of(grid)};
  }

  std::vector<std::string> write() {
    loggers::make_mlflow_experiment(place_);
    runs_.reserve(grid_.size());
    for (const tune::Result& trial : grid_) {
      place_.run = trial.trial_id;
      place_.run_location = location_of(trial.path);
      runs_.emplace_back(place_).set_config(trial.config);
    }
    std::size_t before = 0;
    grid_.for_each_result([&](const tune::Result& trial, std::size_t index, const Metrics& metrics) {
      const auto number = static_cast<std::size_t>(&trial - &*grid_.begin());
      for (; before < number; ++before) finish(before);
      time_ = metrics.number(loggers::result_key::timestamp).value_or(grid_.summary().started);
      runs_[number].add(loggers::flatten(metrics.dict()), trial.config_at(index), time_);
    });
    for (; before < runs_.size(); ++before) finish(before);
    std::vector<std::string> notes;
    for (const auto& [name, safe] : renamed_)
      notes.push_back(fmt::format("\"{}\" is \"{}\" in MLflow, which does not accept that name", name, safe));
    return notes;
  }

 private:
  static std::string location_of(const std::filesystem::path& path) {
    const std::string text = place_text(path);
    return text == path.string() ? std::filesystem::absolute(path).lexically_normal().string() : text;
  }

  // Ends the run of a trial whose results have been added, and writes it.
  void finish(std::size_t number) {
    const tune::Result& trial = grid_[number];
    loggers::MlflowRun& run = runs_[number];
    if (trial.num_results() == 0) time_ = grid_.summary().last_event;
    run.set_tag("cadre.status", to_string(trial.status));
    if (trial.error) run.set_tag("cadre.error", *trial.error);
    run.set_status(mlflow_status(trial, grid_.summary().state), time_);
    run.flush();
    renamed_.insert(run.renamed().begin(), run.renamed().end());
    run = loggers::MlflowRun({});
  }

  const tune::ResultGrid& grid_;
  loggers::MlflowPlace place_;
  std::vector<loggers::MlflowRun> runs_;
  double time_ = 0;  // of the last result, in seconds since 1970
  std::map<std::string, std::string> renamed_;
};

}  // namespace

std::vector<std::string> export_mlflow(const tune::ResultGrid& grid, const std::filesystem::path& store) {
  return MlflowExport(grid, store).write();
}

}  // namespace cadre::cli
