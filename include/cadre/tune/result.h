/// \file
/// Results of an experiment, one per trial, which can be read from its directory at any time.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cadre/checkpoint.h"
#include "cadre/checkpoint_config.h"
#include "cadre/value.h"

namespace cadre::tune {

/// Keys of a result with a meaning to Cadre; tune::report() lists all keys that it adds.
/// Key of the number of results of the trial so far, including its checkpoint's lineage.
inline constexpr char TRAINING_ITERATION[] = "training_iteration";
/// Key of the running time of the trial so far, in seconds, including its checkpoint's lineage.
inline constexpr char TIME_TOTAL_S[] = "time_total_s";
/// Key whose value true ends the trial.
inline constexpr char DONE[] = "done";
/// Key whose value true asks for a checkpoint of this result, if the trainable can write one: reported, or set in a
/// callback's on_trial_result.
inline constexpr char SHOULD_CHECKPOINT[] = "should_checkpoint";

namespace detail {
struct ResultRows;
}

/// The state of a trial.
enum class TrialStatus {
  pending,     ///< waiting for resources, or for a process to run the experiment
  running,     ///< being trained by a worker
  paused,      ///< waiting for the scheduler, in report() or without a process
  terminated,  ///< ended successfully
  stopped,     ///< ended early by the scheduler or the user
  error,       ///< failed for good
};
/// Returns "PENDING", "RUNNING", "PAUSED", "TERMINATED", "STOPPED" or "ERROR".
std::string to_string(TrialStatus status);

/// A completed exploit: a trial dropped its state and continued from a better trial's checkpoint.
struct ExploitRecord {
  /// The exploration of one hyper-parameter.
  struct Change {
    std::string key = {};        ///< path of the parameter ("optimizer/lr")
    Value before = {};           ///< value in the donor's config
    std::string operation = {};  ///< "* 1.2", "resample", "shift right", ...
    Value after = {};            ///< explored value
  };

  std::int64_t training_iteration = 0;    ///< the trial's last training_iteration before the exploit
  std::size_t first_result = 0;           ///< index in metrics_history() of the first result after the exploit
  std::string donor = {};                 ///< id of the donor trial
  std::int64_t donor_iteration = 0;       ///< training_iteration of the donor's checkpoint
  std::filesystem::path checkpoint = {};  ///< directory of that checkpoint; may have been deleted since
  Config config = {};                     ///< the trial's config after the exploit
  std::vector<Change> changes = {};       ///< explored hyper-parameters, in order
};

/// One trial. A value.
struct Result {
  std::string trial_id = {};  ///< "00003"
  /// State of the trial. While no process runs the experiment, a trial that has not ended is pending.
  TrialStatus status = TrialStatus::pending;
  Config config = {};  ///< config of the last attempt; after an exploit the explored one
  /// The last result; empty if nothing was reported. After an exploit, until the trial reports itself, the donor's.
  Metrics metrics = {};
  /// The latest checkpoint, which may be older than `metrics`: best_checkpoints has the result that it was reported
  /// with.
  std::optional<Checkpoint> checkpoint = {};
  /// The kept checkpoints with the results that they were reported with, best last, as ranked by the CheckpointConfig.
  std::vector<std::pair<Checkpoint, Metrics>> best_checkpoints = {};
  std::filesystem::path path = {};        ///< the trial's directory
  std::optional<std::string> error = {};  ///< reason why the trial failed; empty if it has not

  Config drawn_config = {};  ///< as drawn from the search space when the trial was made
  Dict sampled = {};         ///< entries of drawn_config that differ between trials, by path ("optimizer/lr")
  std::vector<ExploitRecord> exploits = {};  ///< in order
  std::int64_t attempts = 0;                 ///< workers started
  std::int64_t failures = 0;                 ///< failures of the trial, including those that were retried
  /// Internal: the location of the trial's results in the store. Shared by copies.
  std::shared_ptr<const detail::ResultRows> rows = {};

  /// Returns the number of results that the trial has reported: the size of metrics_history().
  std::size_t num_results() const;
  /// Returns all results that the trial reported, before and after exploits, in order, as in result.json: a step that
  /// was repeated after an interruption occurs once. Reads the experiment's store. Throws NotFound if the experiment
  /// was moved, StorageError if the store cannot be read or is damaged.
  std::vector<Metrics> metrics_history() const;
  /// Returns the config that a result of metrics_history() was reported with. `index` must be below its size. The
  /// reference is valid as long as this Result.
  const Config& config_at(std::size_t index) const;
  /// Returns the values of one column, one for each result of metrics_history(): column<double>("loss"). The name is
  /// that of a metric, of a nested one as "eval/loss", or "config/lr": the parameter lr that each result was reported
  /// with, that is its schedule. T is double, another type of Value::get, or a std::optional of one. A result without
  /// the column, or with null, has NaN in a column of double or float, null in one of Value, and nothing in one of a
  /// std::optional. Throws NotFound if no result has the column, with the names that there are, or if T has no value
  /// for what is missing; InvalidArgument for a value that is no T; and what metrics_history() throws. Empty without
  /// results.
  template <class T>
  std::vector<T> column(std::string_view name) const;

  /// Returns the kept checkpoint with the best value of a metric in its result: get_best_checkpoint(minimize("loss")),
  /// or with a name and a mode; among equals the first in best_checkpoints. Throws InvalidArgument if no direction is
  /// given, NotFound if no checkpoint has a finite value.
  Checkpoint get_best_checkpoint(const Objective& metric, std::optional<Mode> mode = {}) const;

 private:
  std::vector<Value> column_values(std::string_view name) const;  // null: missing
  [[noreturn]] void refuse_in_column(std::string_view name, std::size_t index, const char* reason) const;
  [[noreturn]] void lacks_in_column(std::string_view name, std::size_t index) const;
};

namespace detail {
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

// Returns a value of a column; nothing if it is missing and T cannot say so.
template <class T>
std::optional<T> column_value(const Value& value) {
  if constexpr (is_optional<T>) {
    return value.is_null() ? T() : T(value.get<typename T::value_type>());
  } else if constexpr (std::same_as<T, Value>) {
    return value;
  } else {
    if (!value.is_null()) return value.get<T>();
    if constexpr (std::floating_point<T>) return std::numeric_limits<T>::quiet_NaN();
    return std::nullopt;
  }
}
}  // namespace detail

template <class T>
std::vector<T> Result::column(std::string_view name) const {
  std::vector<T> column;
  for (const Value& value : column_values(name)) {
    try {
      if (std::optional<T> one = detail::column_value<T>(value)) {
        column.push_back(*std::move(one));
        continue;
      }
    } catch (const InvalidArgument& error) {
      refuse_in_column(name, column.size(), error.what());
    }
    lacks_in_column(name, column.size());
  }
  return column;
}

/// The score of a trial by its results: the last one; the mean, the lowest or the highest of all; the mean of the last
/// 5 or 10. All are over the trial's own metrics_history(), regardless of the trial from which it continued, and leave
/// out results without the metric, NaN and infinities.
enum class Scope {
  last,         ///< the last result
  avg,          ///< the mean of all results
  min,          ///< the lowest value
  max,          ///< the highest value
  last_5_avg,   ///< the mean of the last 5, or of all if there are fewer
  last_10_avg,  ///< the mean of the last 10, or of all if there are fewer
};

/// The state of an experiment.
enum class ExperimentState {
  running,      ///< a process runs it
  finished,     ///< all trials have ended
  interrupted,  ///< it can be continued with Tuner::restore
};
/// Returns "running", "finished" or "interrupted".
std::string to_string(ExperimentState state);

/// A summary of an experiment.
struct ExperimentSummary {
  std::string name = {};                              ///< name of its directory
  std::string trainable = {};                         ///< name of the function or class
  ExperimentState state = ExperimentState::finished;  ///< current state
  std::string controller = {};    ///< process that runs it, "process 4711 on host, for 20 s"; empty: none
  bool is_paused = false;         ///< true: it runs, but waits for `cadre resume`
  Config options = {};            ///< present options; docs/formats.md, "The stored options"
  std::string metric = {};        ///< metric of its TuneConfig; may be empty
  std::optional<Mode> mode = {};  ///< mode of its TuneConfig; empty if it has no metric
  double started = 0;             ///< seconds since 1970
  double last_event = 0;          ///< time of the last event, in seconds since 1970
  double running_seconds = 0;     ///< running time of all sessions together, in seconds
  std::int64_t sessions = 0;      ///< number of sessions: the first one and each restore
  std::string stop_reason = {};   ///< why a stopper has stopped all trials; empty: none has
};

/// The rows of a table of results.
enum class Rows {
  last,  ///< the last result of each trial
  best,  ///< the result of each trial with the best value of a metric
  all,   ///< all results of all trials
};

/// Options of a table of results.
struct TableOptions {
  Rows rows = Rows::last;         ///< results to include
  Objective metric = {};          ///< metric of Rows::best; default: the TuneConfig's
  std::optional<Mode> mode = {};  ///< required, here or in `metric`, unless it is the TuneConfig's metric
};

/// The results of all trials, in the order in which the trials were made. A value: a snapshot of the experiment at the
/// time when the grid was made, except for data that is read from the store on demand.
class ResultGrid {
 public:
  /// Makes a grid of existing results; `metric` may be empty. The summary has the name of the directory, metric and
  /// mode.
  ResultGrid(std::filesystem::path experiment_path, std::vector<Result> results, const Objective& metric);
  /// Makes a grid with a full summary of the experiment. fit() and from_directory() use it.
  ResultGrid(std::filesystem::path experiment_path, std::vector<Result> results, ExperimentSummary summary);

  /// Reads the current results in an experiment's directory: of an experiment that has finished, was interrupted or
  /// killed, or is being run by another process. Any program can read them, regardless of its trainables. Nothing is
  /// run, repaired or changed, and a process that runs the experiment is not delayed. Throws NotFound if there is no
  /// experiment, StorageError for a store that is damaged (with file and byte) or of another version.
  /// The call scans the store once; results are read on demand. `directory` may be the URI of a published experiment:
  /// its last published state is then downloaded into a temporary directory, which is removed with the last copy of the
  /// results; throws InvalidArgument for a storage that cannot be read. Reads the directory of a Study too.
  static ResultGrid from_directory(const std::filesystem::path& directory);

  /// Returns the trial with the best value of a metric in a scope; default: metric and mode of the TuneConfig. Another
  /// metric needs a direction: get_best_result(minimize("loss")), or a name with a mode. Trials without a finite number
  /// are skipped; failed trials with one are included; among equals the first wins. Every scope except Scope::last
  /// reads all results. Throws InvalidArgument if no metric or no direction is known, NotFound if no trial has the
  /// metric or the experiment was moved, StorageError if results cannot be read. The reference is valid as long as the
  /// grid.
  const Result& get_best_result(const Objective& metric = {}, std::optional<Mode> mode = {},
                                Scope scope = Scope::last) const;
  /// Returns the indices of the trials on the Pareto front of several metrics: those that no other trial beats, which
  /// is as good in every metric and better in one. They are in the order of the first metric, best first, equal ones in
  /// that of the next. Every metric needs a direction, except the TuneConfig's: pareto_front({minimize("loss"),
  /// minimize("latency")}). Trials without a finite number for each are skipped; failed trials with them are included;
  /// of trials with the same values all are there. Every scope except Scope::last reads all results, once for each
  /// metric. Throws InvalidArgument if there is no metric, one occurs twice or one has no direction; NotFound if no
  /// trial has all metrics or the experiment was moved; StorageError if results cannot be read.
  std::vector<std::size_t> pareto_front(const std::vector<Objective>& metrics, Scope scope = Scope::last) const;
  /// Returns the value of each trial in a scope, in the order of the trials; empty if there is no finite number. Every
  /// scope except Scope::last reads all results and throws NotFound if the experiment was moved, StorageError if
  /// results cannot be read.
  std::vector<std::optional<double>> scores(const std::string& metric, Scope scope) const;

  std::size_t size() const { return results_.size(); }  ///< returns the number of trials
  /// Returns the trial at an index; throws std::out_of_range unless it is below size().
  const Result& operator[](std::size_t index) const { return results_.at(index); }
  std::vector<Result>::const_iterator begin() const { return results_.begin(); }  ///< returns the first trial
  std::vector<Result>::const_iterator end() const { return results_.end(); }      ///< returns the end of the trials

  /// The function that for_each_result calls.
  using Visit = std::function<void(const Result& trial, std::size_t index, const Metrics& metrics)>;
  /// Calls `visit` with each result of each trial, trial by trial, as in metrics_history(), and its index there. Much
  /// faster than metrics_history() of many trials. Throws NotFound or StorageError, and exceptions of `visit`.
  void for_each_result(const Visit& visit) const;

  /// Writes a table for pandas.read_csv: a row for each result, with trial_id, status, the metrics and config as
  /// columns, nested ones as "eval/accuracy" and "config/optimizer/lr"; values as Python's csv module writes them, null
  /// as an empty field. The config is the one with which the result was reported. With Rows::last and Rows::best each
  /// trial has one row, even without results; with Rows::best a trial that lacks the metric has its last result. Throws
  /// InvalidArgument if no metric or direction is known for Rows::best, StorageError if results cannot be read or the
  /// stream fails.
  void write_csv(std::ostream& out, const TableOptions& options = {}) const;
  /// Writes the same rows as one JSON dictionary per line, nested as they were reported, with the config under
  /// "config", in the format of Python's json.dumps: NaN and Infinity are tokens. Throws the same errors.
  void write_json_lines(std::ostream& out, const TableOptions& options = {}) const;

  std::vector<std::string> errors() const;  ///< returns "trial <id>: reason" for each failed trial
  std::size_t num_errors() const;           ///< returns the number of trials that failed for good
  std::size_t num_terminated() const;       ///< returns the number of trials that ended successfully, also early
  std::size_t num_stopped() const;          ///< returns the number of those that the scheduler ended early
  const std::filesystem::path& experiment_path() const { return experiment_path_; }  ///< returns the directory
  const ExperimentSummary& summary() const { return summary_; }                      ///< returns the summary

 private:
  std::filesystem::path experiment_path_ = {};
  std::vector<Result> results_ = {};
  ExperimentSummary summary_ = {};
};

}  // namespace cadre::tune
