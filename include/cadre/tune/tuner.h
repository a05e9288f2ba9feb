/// \file
/// The Tuner, which runs an experiment: many trials of one trainable.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cadre/checkpoint_config.h"
#include "cadre/failure_config.h"
#include "cadre/object.h"
#include "cadre/tune/callback.h"
#include "cadre/tune/extension.h"
#include "cadre/tune/result.h"
#include "cadre/tune/schedulers.h"
#include "cadre/tune/search_space.h"
#include "cadre/tune/searchers.h"
#include "cadre/tune/stop.h"
#include "cadre/tune/trainable.h"

namespace cadre::tune {

using cadre::CheckpointConfig;
using cadre::FailureConfig;
using cadre::IfExists;
using cadre::Loggers;
using cadre::maximize;
using cadre::minimize;
using cadre::Objective;

/// Limits of parking: paused trials keep their processes, blocked in report(), so that they resume at no cost. Beyond
/// these limits the process that loses the fewest iterations since its latest checkpoint is ended, among equals the one
/// that has waited longest; a process that can still write a checkpoint is asked for one first. The trial later
/// continues from its checkpoint in a new process and repeats the lost iterations.
struct Parking {
  std::optional<std::int64_t> max_workers = {};  ///< parked processes, 0 or more; default: as many as memory allows
  /// Fraction of the machine's memory, from 0 (no limit) to 1. While less than this is free, one parked process is
  /// ended every second.
  double min_free_memory = 0.1;
  /// If true, trials that use GPUs are parked with their data in GPU memory, and resume where they were; otherwise
  /// their processes are ended at once, which frees the whole GPU.
  bool with_gpus = false;
};

/// The configs to try, and their order.
struct TuneConfig {
  /// The objective: minimize("loss"), maximize("mean_accuracy"), or a name together with `mode`. The scheduler,
  /// stoppers, get_best_result, pictures and the program cadre use it unless they are given another one, and its
  /// direction applies to plain numbers in `stop` and to checkpoint_score_attribute. Default: the scheduler's, or none.
  Objective metric = {};
  std::optional<Mode> mode = {};  ///< direction of good values if `metric` is a plain name; no default
  /// Number of draws from the search space; each draw makes as many trials as its grids have combinations. At least 1;
  /// at most 2^31 trials in all.
  std::int64_t num_samples = 1;
  /// Chooses the configs of trials: one of cadre/tune/searchers.h, or the program's own. The default draws them.
  AnySearcher searcher = RandomSearch{};
  /// Decides which trials continue, wait, stop or exploit others: one of cadre/tune/schedulers.h, or the program's own.
  AnyScheduler scheduler = FIFO{};
  std::int64_t max_concurrent_trials = 0;  ///< trials running at a time, 0 or more; 0: as many as the resources allow
  std::uint64_t seed = 0;                  ///< seed of all random draws: the search space and the scheduler's choices
  /// Values of the first samples, by key or path ("model/width"); keys that a point omits are drawn, and grids that it
  /// omits are searched. The searcher is told of these trials like of others. Default: none.
  std::vector<Config> points_to_evaluate = {};
  Parking parking = {};               ///< limits of paused trials
  bool constant_grid_search = false;  ///< if true, all trials of one sample have equal values except for the grids
  /// Time limit of the experiment, over all sessions together; above 0. When it is reached all trials are stopped:
  /// running trials at their next report, which counts, or by force after the stop_grace_period. Default: no limit.
  std::optional<Seconds> time_budget = {};
};

/// Resource limits of a trial, all above 0. Exceeding a limit is a failure of the trial, whose error states the
/// cause.
struct TrialLimits {
  /// Running time of the trial in total, as time_total_s counts it: without the time in which it is paused. A trial
  /// that reports is ended at the report; a trial that does not is ended by force. Default: no limit.
  std::optional<Seconds> time = {};
  /// Time from the worker's start or a report's return to the next report: a worker that takes longer hangs, and is
  /// ended by force. Default: no limit.
  std::optional<Seconds> time_between_reports = {};
  /// Private memory, in bytes, that each process of a worker may allocate beyond the program's allocations at the time
  /// when the worker was started. The kernel refuses more: std::bad_alloc in C++, DefaultCPUAllocator's error in
  /// libtorch. Default: no limit.
  std::optional<std::uint64_t> memory_bytes = {};
};

/// Storage, end and output of an experiment.
struct RunConfig {
  /// Name of the experiment and its directory; must be a valid file name. Default: the trainable, the date and the
  /// time.
  std::string name = {};
  /// Action if an experiment of that name exists. With IfExists::restore a program that is started again continues its
  /// experiment; that requires a name.
  IfExists if_exists = IfExists::fail;
  /// Parent folder of the experiment's directory: a path, or the URI of a storage ("s3://bucket/folder", also gs, abfs
  /// and file; options after a "?", in the syntax of Arrow's file systems). An experiment that is not on a local disk
  /// is published, see PublishConfig. Default: ~/cadre_results.
  std::filesystem::path storage_path = {};
  PublishConfig publish_config = {};        ///< used if `storage_path` is not on a local disk
  Stop stop = {};                           ///< criteria that end trials; default: when their function returns
  CheckpointConfig checkpoint_config = {};  ///< checkpoints to keep; default: all
  FailureConfig failure_config = {};        ///< consequences of a failure; default: that trial ends
  TrialLimits limits = {};                  ///< limits of each trial
  /// Time that a worker that was asked to stop, or an experiment that was interrupted, has until it is ended by force.
  /// 0 or more.
  Seconds stop_grace_period = std::chrono::seconds(30);
  /// Output of fit() on standard output. 0: none, and on standard error only the errors of trials that failed for good.
  /// 1: the status of the trials, and messages when they start (at most 20 of them), continue from a checkpoint,
  /// exploit and explore, end or fail. 2: also all starts, and every result and checkpoint. If standard output is a
  /// terminal, the status is drawn in place below the log; otherwise it is printed at most every 30 seconds and at the
  /// end.
  int verbose = 1;
  /// If true, fit() repeats the output of the trials' processes within 100 ms, each line after "(trial 00003)": their
  /// standard output on standard output, and their standard error on standard error; if the status is drawn in place,
  /// both appear above it. Terminal control characters are made visible, as "\x1b". If a process prints more than 64
  /// KiB in that time, only the newest lines are repeated. In any case all output is written to the files stdout and
  /// stderr in the trial's directory, each of which keeps 64 MiB; `cadre logs` shows them. With verbose 0 nothing is
  /// repeated.
  bool log_to_driver = false;
  /// If true, each trial's process runs in the trial's directory, so that files which it writes with relative paths are
  /// created there. Relative paths given to the program, such as those of its data, must then be made absolute before
  /// the trials get them. Otherwise all processes run in the directory in which the program called cadre::init.
  bool chdir_to_trial_dir = false;
  Loggers loggers = {};      ///< result files to write; default: all
  Callbacks callbacks = {};  ///< called as the experiment progresses; see cadre/tune/callback.h
};

/// All options of an experiment.
struct TunerOptions {
  Space param_space = {};       ///< search space of the configs; default: empty configs
  TuneConfig tune_config = {};  ///< the configs to try, and their order
  RunConfig run_config = {};    ///< storage, end and output
};

/// Options of a restore. Restoring an experiment whose trials have all ended or failed runs nothing: fit() then says
/// which of these options would continue the failed trials.
struct RestoreOptions {
  bool resume_errored = false;   ///< trials that failed continue from their latest checkpoint
  bool restart_errored = false;  ///< trials that failed start from the beginning; not together with resume_errored
  /// If true, a decision that differs from the recorded one is reported, and the new one applies from there on;
  /// otherwise it is an error. For programs that have changed.
  bool allow_divergence = false;
  /// If set, replaces the trainable's code until fit() returns, for a program of a host (cadre/host.h) that has changed
  /// its function; a later restore begins with the first one again. Default: the experiment's own.
  HostFunction host_function = {};
  /// If true, an experiment of a Program (cadre/tune/program.h) is continued, which executes the program that its
  /// directory names; otherwise that is an error, because whoever wrote the directory would choose what is executed.
  bool run_program = false;
  Extension extend = {};              ///< other options from here on, such as more samples or another stop
  Callbacks callbacks = {};           ///< continue with their saved states; in addition to those of a given RunConfig
  PublishConfig publish_config = {};  ///< for a published experiment
};

/// An experiment. All members except can_restore must be called in the main thread of a program that called
/// cadre::init.
class Tuner {
 public:
  /// Checks all options; throws InvalidArgument that names every error. Writes nothing. From here on the Tuner holds
  /// the objects that the options refer to.
  Tuner(Trainable trainable, TunerOptions options);
  /// \cond mistakes, which do not compile
  template <class F>
    requires(!std::convertible_to<F, Trainable> && cadre::detail::NotFn<F>)
  CADRE_MISTAKE("a training function, no lambda, is given by its name: write tune::Tuner(fn<f>, ...)")
  Tuner(F&& function, TunerOptions options);
  template <class WRITE_TunerOptions_BEFORE_THE_BRACES_AND_THE_COMPILER_NAMES_THE_FIELD = void>
  Tuner(Trainable trainable, ...) CADRE_DELETED(
      "these are no TunerOptions: write tune::TunerOptions before the braces, and the compiler names the field");
  /// \endcond

  /// Returns a Tuner that continues the interrupted experiment in `directory`: the same trials with their configs,
  /// results, checkpoints and population. Trials that had not ended run again from their latest checkpoint. All state
  /// comes from the directory, which may have been moved or renamed; the trainable is found by its name among those of
  /// this program, or is a program of its own (RestoreOptions::run_program). Throws NotFound if there is no experiment,
  /// StorageError if it is damaged or being run, InvalidArgument if this program has no such trainable or `restore`
  /// contradicts itself.
  ///
  /// `directory` may be the URI of a published experiment ("s3://bucket/folder/name"), or its working directory. Given
  /// a URI, the experiment continues in the working directory if that exists and has everything that is published, and
  /// otherwise in a new one that is made from the published files. Throws the same errors, and InvalidArgument if the
  /// storage cannot be used.
  static Tuner restore(const std::filesystem::path& directory, const RestoreOptions& restore = {});
  /// Does the same with trainable and options, for a program that has them anyway: throws InvalidArgument that lists
  /// the differences from those of the interrupted run. `verbose` and `log_to_driver` may differ; `name` and
  /// `storage_path` are not compared.
  static Tuner restore(const std::filesystem::path& directory, Trainable trainable, TunerOptions options,
                       const RestoreOptions& restore = {});
  /// Returns true if `directory`, a path or a URI, holds an experiment, intact or damaged; restore() distinguishes
  /// them; false for a training run. Throws InvalidArgument for a URI that cannot be read. An experiment that was
  /// interrupted before anything was published is found in its working directory on this machine, whose location
  /// `publish_config` may set.
  static bool can_restore(const std::filesystem::path& directory, const PublishConfig& publish_config = {});

  /// Runs the experiment to its end in this thread and returns the results of all trials. May be called once. A trial
  /// that fails does not throw: its error is in the results. Throws InvalidArgument if the experiment exists already
  /// (see IfExists) or a trial needs resources that this machine does not have; nothing ran then. Throws StorageError
  /// if the directory cannot be written and EngineError if workers cannot be started or the fork server has ended;
  /// everything reported until then is in the store, and restore() continues from it. If a storage cannot be reached or
  /// refuses access, that is InvalidArgument at the beginning and a message later.
  ///
  /// Controller and workers wait while the disk is full. SIGINT (Ctrl-C), SIGTERM and SIGHUP (the terminal was closed),
  /// if the program has left them at their defaults, end the experiment: trials stop at their next report or after the
  /// stop_grace_period, and fit() throws Interrupted. The signals may be sent to all processes at once, as service
  /// managers and batch systems do: no trial fails because of that. A second signal, at least a quarter of a second
  /// later, ends the program.
  ResultGrid fit();

 private:
  Tuner(Trainable trainable, TunerOptions options, std::optional<RestoreOptions> restore);
  static Tuner continuing(const std::filesystem::path& directory, Trainable trainable, TunerOptions options,
                          const RestoreOptions& restore);
  void note_extension(const TunerOptions& stored, const TunerOptions* first);
  ResultGrid run();

  std::vector<std::string> restore_notes_ = {};
  std::vector<std::string> notes_ = {};  // warnings about the options
  Trainable trainable_;
  TunerOptions options_;
  std::optional<RestoreOptions> restore_;           // empty: a new experiment
  HostFunction replaced_function_ = {};             // by restore_->host_function; kept for later restores
  Extension extension_ = {};                        // what differs now from the stored options
  std::optional<TunerOptions> first_options_ = {};  // before any extension; empty: `options_`
  std::vector<ObjectRef> objects_ = {};             // held by this process for the options until they are files
  bool fitted_ = false;
};

}  // namespace cadre::tune
