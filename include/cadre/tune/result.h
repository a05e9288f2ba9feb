/// \file
/// What an experiment leaves: a result per trial, read from its directory at any time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cadre/checkpoint.h"
#include "cadre/checkpoint_config.h"
#include "cadre/value.h"

namespace cadre::tune {

/// Keys of a result that mean something to Cadre; tune::report() lists all those that it adds.
/// Results of the trial so far, those of its checkpoint's lineage included.
inline constexpr char TRAINING_ITERATION[] = "training_iteration";
/// Running time of the trial so far, in seconds, those of its checkpoint's lineage included.
inline constexpr char TIME_TOTAL_S[] = "time_total_s";
/// True ends the trial.
inline constexpr char DONE[] = "done";
/// True asks for a checkpoint of this result, where it can be had: reported, or set in a callback's on_trial_result.
inline constexpr char SHOULD_CHECKPOINT[] = "should_checkpoint";

namespace detail {
struct ResultRows;
}

/// How a trial stands.
enum class TrialStatus {
  pending,     ///< waits for resources, or for somebody to run the experiment
  running,     ///< a worker trains it
  paused,      ///< waits in report(), or without a process, for the scheduler
  terminated,  ///< has ended well
  error,       ///< has failed for good
};
/// PENDING, RUNNING, PAUSED, TERMINATED or ERROR.
std::string to_string(TrialStatus status);

/// An exploit that took place: a trial left what it had learnt and continued from a better one's checkpoint.
struct ExploitRecord {
  /// One hyper-parameter that was explored, by its path ("optimizer/lr").
  struct Change {
    std::string key = {};        ///< its path
    Value before = {};           ///< in the donor's config
    std::string operation = {};  ///< "* 1.2", "resample", "shift right", ...
    Value after = {};            ///< from then on
  };

  std::int64_t training_iteration = 0;    ///< of the trial's last result before
  std::size_t first_result = 0;           ///< index in metrics_history() of the first result after it
  std::string donor = {};                 ///< id of the trial that it continues from
  std::int64_t donor_iteration = 0;       ///< training_iteration of the checkpoint that it continues from
  std::filesystem::path checkpoint = {};  ///< that checkpoint's directory; it may be deleted by now
  Config config = {};                     ///< from then on
  std::vector<Change> changes = {};       ///< what exploring changed, in order
};

/// One trial. A value.
struct Result {
  std::string trial_id = {};  ///< "00003"
  /// Where nobody runs the experiment, a trial that has not ended is pending.
  TrialStatus status = TrialStatus::pending;
  Config config = {};  ///< as last run: after an exploit the explored one
  /// The last result, empty when nothing was reported. After an exploit, until it reports itself, that of the donor.
  Metrics metrics = {};
  /// The latest, which may be older than `metrics`: best_checkpoints has the result that it was reported with.
  std::optional<Checkpoint> checkpoint = {};
  /// The kept checkpoints with the results they were reported with, best last, as the CheckpointConfig says.
  std::vector<std::pair<Checkpoint, Metrics>> best_checkpoints = {};
  std::filesystem::path path = {};        ///< the trial's directory
  std::optional<std::string> error = {};  ///< why the trial failed

  Config drawn_config = {};                  ///< from the search space, when the trial was made
  Dict sampled = {};                         ///< of that what differs between trials, by path ("optimizer/lr")
  std::vector<ExploitRecord> exploits = {};  ///< in order
  std::int64_t attempts = 0;                 ///< workers started
  std::int64_t failures = 0;                 ///< times that it failed, also where it was tried again
  /// Cadre's own: where the store has the trial's results. Shared by copies.
  std::shared_ptr<const detail::ResultRows> rows = {};

  /// How many results the trial has reported: the size of metrics_history().
  std::size_t num_results() const;
  /// All results that the trial reported, before and after exploits, in order, as result.json has them: a step that was
  /// repeated after an interruption is there once. Read from the experiment's store. Throws NotFound when the
  /// experiment was moved, StorageError when the store cannot be read or is damaged.
  std::vector<Metrics> metrics_history() const;
  /// The config that a result of metrics_history() was reported with. `index` must be below its size. Good as long as
  /// this Result.
  const Config& config_at(std::size_t index) const;

  /// The kept checkpoint with the best value of a metric in its result, get_best_checkpoint(minimize("loss")) or with a
  /// name and a mode; of equals the first in best_checkpoints. Throws InvalidArgument where no direction is given,
  /// NotFound where none has a finite one.
  Checkpoint get_best_checkpoint(const Objective& metric, std::optional<Mode> mode = {}) const;
};

/// Which of its results speaks for a trial: the last one; the mean, the lowest or the highest of all; the mean of the
/// last 5 or 10. All are over the trial's own metrics_history(), whatever it continued from, and leave out results
/// without the metric, NaN and infinities.
enum class Scope {
  last,         ///< the last result
  avg,          ///< the mean of all
  min,          ///< the lowest value of all
  max,          ///< the highest value of all
  last_5_avg,   ///< the mean of the last 5, or of all where they are fewer
  last_10_avg,  ///< the mean of the last 10, or of all where they are fewer
};

/// Whether an experiment goes on.
enum class ExperimentState {
  running,      ///< a process runs it
  finished,     ///< all trials have ended
  interrupted,  ///< it can be continued with Tuner::restore
};
/// "running", "finished" or "interrupted".
std::string to_string(ExperimentState state);

/// An experiment as a whole.
struct ExperimentSummary {
  std::string name = {};                              ///< of its directory
  std::string trainable = {};                         ///< name of the function
  ExperimentState state = ExperimentState::finished;  ///< whether it goes on
  std::string controller = {};                        ///< who runs it, "process 4711 on host, for 20 s"; empty: nobody
  Config options = {};                                ///< what it was begun with; docs/formats.md, "The stored options"
  std::string metric = {};                            ///< of its TuneConfig; may be empty
  std::optional<Mode> mode = {};                      ///< of its TuneConfig; empty where it has no metric
  double started = 0;                                 ///< seconds since 1970
  double last_event = 0;                              ///< when something happened last, in seconds since 1970
  double running_seconds = 0;                         ///< of all sessions together, while it was not stopped
  std::int64_t sessions = 0;                          ///< times that it was begun or continued
};

/// Which results a table has: the last one of each trial, the one with the best value of a metric, or all.
enum class Rows {
  last,  ///< the last one of each trial
  best,  ///< the one with the best value of a metric, of each trial
  all,   ///< all of all trials
};

/// What a table of results has.
struct TableOptions {
  Rows rows = Rows::last;         ///< which results
  Objective metric = {};          ///< of Rows::best; default: that of the TuneConfig
  std::optional<Mode> mode = {};  ///< must be said for another metric than the TuneConfig's, here or with it
};

/// The results of all trials, in the order in which the trials were made. A value: it shows the experiment as it was
/// when the grid was made, but for what is read from the store when it is asked for.
class ResultGrid {
 public:
  /// Of results that somebody has; `metric` may be empty. The summary has the name of the directory, metric and mode.
  ResultGrid(std::filesystem::path experiment_path, std::vector<Result> results, const Objective& metric);
  /// The same with all that is known of the experiment. fit() and from_directory() make it so.
  ResultGrid(std::filesystem::path experiment_path, std::vector<Result> results, ExperimentSummary summary);

  /// The results in an experiment's directory as they are now: of an experiment that has finished, was interrupted or
  /// killed, or is being run by another process. Any program can read them, whatever trainables it has. Nothing is run,
  /// repaired or changed, and nobody who runs the experiment is held up. Throws NotFound when there is no experiment,
  /// StorageError for a store that is damaged (with file and byte) or of another version.
  /// It takes one walk over the store; results are read when they are asked for. The URI of a published experiment may
  /// stand for the directory: its last published state is then read into a directory for temporary files, which is
  /// removed with the last copy of the results; throws InvalidArgument for a storage that cannot be read.
  static ResultGrid from_directory(const std::filesystem::path& directory);

  /// The trial with the best value of a metric in a scope; default: metric and mode of the TuneConfig. Another metric
  /// needs a direction: get_best_result(minimize("loss")), or a name with a mode. Trials without a
  /// finite number do not take part, failed ones with one do; the first of equals wins. Every scope but Scope::last
  /// reads all results. Throws InvalidArgument when no metric or no direction is known, NotFound when no trial has it
  /// or the experiment was moved, StorageError. Good as long as the grid.
  const Result& get_best_result(const Objective& metric = {}, std::optional<Mode> mode = {},
                                Scope scope = Scope::last) const;
  /// The value of each trial in a scope, in the order of the trials; empty where there is no finite number. Every scope
  /// but Scope::last reads all results: throws NotFound or StorageError.
  std::vector<std::optional<double>> scores(const std::string& metric, Scope scope) const;

  std::size_t size() const { return results_.size(); }  ///< number of trials
  /// The trial at an index below size(); throws std::out_of_range.
  const Result& operator[](std::size_t index) const { return results_.at(index); }
  std::vector<Result>::const_iterator begin() const { return results_.begin(); }  ///< the first trial
  std::vector<Result>::const_iterator end() const { return results_.end(); }      ///< behind the last trial

  /// What for_each_result calls.
  using Visit = std::function<void(const Result& trial, std::size_t index, const Metrics& metrics)>;
  /// Calls `visit` with each result of each trial, trial by trial, as metrics_history() has them, and their index in
  /// it. Much quicker than metrics_history() of many trials. Throws NotFound or StorageError, and what `visit` throws.
  void for_each_result(const Visit& visit) const;

  /// A table for pandas.read_csv: a row for each result, with trial_id, status, the metrics and config as columns,
  /// nested ones as "eval/accuracy" and "config/optimizer/lr"; values as Python's csv module writes them, null is
  /// empty. The config is that with which the result was reported. With Rows::last and Rows::best each trial has one
  /// row, also without results; with Rows::best a trial that lacks the metric has its last one. Throws InvalidArgument
  /// when no metric or direction is known for Rows::best, StorageError when results cannot be read or the stream fails.
  void write_csv(std::ostream& out, const TableOptions& options = {}) const;
  /// The same rows as a JSON dictionary in each line, nested as they were reported, with the config under "config". As
  /// Python's json.dumps writes them: NaN and Infinity are tokens. Throws the same.
  void write_json_lines(std::ostream& out, const TableOptions& options = {}) const;

  std::vector<std::string> errors() const;  ///< "trial <id>: why", of the trials that failed
  std::size_t num_errors() const;           ///< of the trials that failed for good
  std::size_t num_terminated() const;       ///< of the trials that ended well
  const std::filesystem::path& experiment_path() const { return experiment_path_; }  ///< the directory
  const ExperimentSummary& summary() const { return summary_; }                      ///< the experiment as a whole

 private:
  std::filesystem::path experiment_path_ = {};
  std::vector<Result> results_ = {};
  ExperimentSummary summary_ = {};
};

}  // namespace cadre::tune
