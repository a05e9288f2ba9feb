// What an experiment leaves: a result per trial.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cadre/checkpoint.h"
#include "cadre/tune/schedulers.h"
#include "cadre/value.h"

namespace cadre::tune {

enum class TrialStatus { pending, running, paused, terminated, error };
// PENDING, RUNNING, PAUSED, TERMINATED or ERROR.
std::string to_string(TrialStatus status);

// One trial at the end of an experiment. A value.
struct Result {
  std::string trial_id = {};
  TrialStatus status = TrialStatus::pending;
  Config config = {};                         // as last run: after an exploit the explored one
  Metrics metrics = {};                       // the last result; empty when nothing was reported
  std::optional<Checkpoint> checkpoint = {};  // the latest
  // The kept checkpoints with the results they were reported with, best last.
  std::vector<std::pair<Checkpoint, Metrics>> best_checkpoints = {};
  std::filesystem::path path = {};        // the trial's directory
  std::optional<std::string> error = {};  // why the trial failed

  // All results of the trial in the order in which they were reported, read from the experiment's store. Throws
  // StorageError.
  std::vector<Metrics> metrics_history() const;

  // The kept checkpoint with the best value of a metric (default: Mode::max). Throws NotFound where none has it.
  Checkpoint get_best_checkpoint(const std::string& metric, Mode mode) const;
};

// The results of all trials, in the order in which the trials were made.
class ResultGrid {
 public:
  ResultGrid(std::filesystem::path experiment_path, std::vector<Result> results, std::string metric, Mode mode)
      : experiment_path_(std::move(experiment_path)),
        results_(std::move(results)),
        metric_(std::move(metric)),
        mode_(mode) {}

  // The trial whose last result has the best value of a metric; default: metric and mode of the TuneConfig. Trials
  // without it, or with NaN or an infinity, do not take part; the first of equals wins. Throws InvalidArgument when no
  // metric is known, NotFound when no trial has it.
  const Result& get_best_result(const std::string& metric = {}, std::optional<Mode> mode = {}) const;

  std::size_t size() const { return results_.size(); }
  const Result& operator[](std::size_t index) const { return results_.at(index); }
  std::vector<Result>::const_iterator begin() const { return results_.begin(); }
  std::vector<Result>::const_iterator end() const { return results_.end(); }

  std::vector<std::string> errors() const;  // "trial <id>: why", of the trials that failed
  std::size_t num_errors() const;
  std::size_t num_terminated() const;
  const std::filesystem::path& experiment_path() const { return experiment_path_; }

 private:
  std::filesystem::path experiment_path_ = {};
  std::vector<Result> results_ = {};
  std::string metric_ = {};
  Mode mode_;
};

}  // namespace cadre::tune
