/// \file
/// The Tuner: runs an experiment, which is many trials of one trainable.
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
#include "cadre/tune/result.h"
#include "cadre/tune/schedulers.h"
#include "cadre/tune/search_space.h"
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

/// Trials that wait for their turn keep their processes, blocked in report(), so that going on costs nothing. What that
/// may take: beyond it the process that has waited longest is ended, one whose last report had a checkpoint first; its
/// trial later continues from its checkpoint in a new process and repeats what it did since.
struct Parking {
  std::optional<std::int64_t> max_workers = {};  ///< waiting processes, 0 or more; default: as many as memory allows
  /// When less of the machine's memory than this is free, from 0 (never) to 1, one of them is ended every second.
  double min_free_memory = 0.1;
  /// Trials that use GPUs wait with what they have in GPU memory, and go on where they were; otherwise their processes
  /// are ended at once, and the GPU is free as a whole.
  bool with_gpus = false;
};

/// What is tried, and in which order.
struct TuneConfig {
  /// The objective: minimize("loss"), maximize("mean_accuracy"), or a name together with `mode`. It is said
  /// here once: scheduler, stoppers, get_best_result, pictures and the program cadre use it when they are given none,
  /// and its direction counts for plain numbers in `stop` and for checkpoint_score_attribute. Default: the scheduler's,
  /// or none.
  Objective metric = {};
  std::optional<Mode> mode = {};  ///< which values are good where `metric` is a plain name; no default
  /// How often the search space is drawn from; each time gives as many trials as its grids have combinations. At
  /// least 1; at most 2^31 trials in all.
  std::int64_t num_samples = 1;
  Scheduler scheduler = FIFO{};            ///< who goes on, who waits, who exploits whom
  std::int64_t max_concurrent_trials = 0;  ///< that run at a time, 0 or more; 0: as many as the resources allow
  std::uint64_t seed = 0;  ///< of everything that is drawn: the search space and the scheduler's choices
  /// What the first samples are to be, by key or path ("model/width"); what a point leaves out is drawn, and grids that
  /// it leaves out are searched. Default: none.
  std::vector<Config> points_to_evaluate = {};
  Parking parking = {};               ///< what waiting trials may take
  bool constant_grid_search = false;  ///< all trials of one sample have the same values, but for the grids
  /// How long the experiment may run, in all sessions together; above 0. Then all trials are stopped: those that run
  /// at their next report, which counts, or by force after the stop_grace_period. Default: as long as it takes.
  std::optional<Seconds> time_budget = {};
};

/// What a trial may use; limits are above 0. Exceeding a limit is a failure of the trial, told apart from others by its
/// cause.
struct TrialLimits {
  /// Running time of the trial in all, as time_total_s counts it: without the time that it is paused. A trial that
  /// reports is ended at the report; one that does not is ended by force. Default: none.
  std::optional<Seconds> time = {};
  /// From the worker's start or a report's return to the next report: a worker that takes longer hangs, and is ended by
  /// force. Default: none.
  std::optional<Seconds> time_between_reports = {};
  /// Private memory, in bytes, that each process of a worker may allocate beyond what the program had allocated when
  /// the worker was started. More is refused by the kernel: std::bad_alloc in C++, DefaultCPUAllocator's error in
  /// libtorch. Default: none.
  std::optional<std::uint64_t> memory_bytes = {};
};

/// Where an experiment is kept, and when it ends.
struct RunConfig {
  /// Of the experiment and its directory, so one that a file may have. Default: the trainable, the date and the time.
  std::string name = {};
  /// Says what happens where an experiment of that name exists. With IfExists::restore the same program continues
  /// when it is started again; that needs a name.
  IfExists if_exists = IfExists::fail;
  /// The folder that the experiment's directory is made in: a path, or the URI of a storage ("s3://bucket/folder", also
  /// gs, abfs and file; options behind a "?", as Arrow's file systems have them). What is no local disk gets everything
  /// published, see PublishConfig. Default: ~/cadre_results.
  std::filesystem::path storage_path = {};
  PublishConfig publish_config = {};        ///< counts where `storage_path` is no local disk
  Stop stop = {};                           ///< when trials are done; default: when their function returns
  CheckpointConfig checkpoint_config = {};  ///< which checkpoints are kept; default: all
  FailureConfig failure_config = {};        ///< what a failure leads to; default: that trial ends
  TrialLimits limits = {};                  ///< of each trial
  /// A worker that was told to stop, and an experiment that was interrupted, have this long until they are ended by
  /// force. 0 or more.
  Seconds stop_grace_period = std::chrono::seconds(30);
  /// What fit() tells on standard output: 0 nothing, and on standard error only what trials failed of for good; 1 the
  /// status of the trials, and as it happens which of them start (of at most 20), continue from a checkpoint, exploit
  /// and explore, end or fail; 2 also all starts, and every result and checkpoint. Where standard output is a terminal,
  /// the status is drawn in place below the log; elsewhere it is printed at most every 30 seconds and at the end.
  int verbose = 1;
  /// Lets fit() repeat what the trials' processes print, each line behind "(trial 00003)", within 100 ms: their
  /// standard output on standard output, and their standard error on standard error; where the status is drawn in
  /// place, both above it. What a terminal would act on is made visible, as "\x1b". Of a process that prints more than
  /// 64 KiB in that time only the newest lines. In any case all of it goes into the files stdout and stderr in the
  /// trial's directory, each of which keeps 64 MiB; `cadre logs` shows them. With verbose 0 nothing is repeated.
  bool log_to_driver = false;
  /// Lets each trial's process run in the trial's directory, so that files with relative paths that it writes lie
  /// there. Relative paths that the program has been given, as those of its data, must then be made absolute before the
  /// trials get them. Otherwise all run where the program was when it called cadre::init.
  bool chdir_to_trial_dir = false;
  Loggers loggers = {};      ///< which result files there are; default: all
  Callbacks callbacks = {};  ///< called as the experiment goes on; see cadre/tune/callback.h
};

/// All options of an experiment.
struct TunerOptions {
  Space param_space = {};       ///< what configs are drawn from; default: empty configs
  TuneConfig tune_config = {};  ///< what is tried
  RunConfig run_config = {};    ///< where it is kept, and when it ends
};

/// How an experiment is continued. One in which every trial has ended or failed runs nothing: fit() then says which of
/// these would take up those that failed.
struct RestoreOptions {
  bool resume_errored = false;   ///< trials that failed continue from their latest checkpoint
  bool restart_errored = false;  ///< trials that failed begin anew; not together with resume_errored
  /// A decision that comes out differently than it was recorded is reported, and the new one counts from there on;
  /// otherwise it is an error. For programs that have changed.
  bool allow_divergence = false;
  Callbacks callbacks = {};  ///< go on with the states that they had; beside those of a RunConfig that is given
  PublishConfig publish_config = {};  ///< of an experiment that is published
};

/// One experiment. Everything here but can_restore belongs to the main thread of a program that called cadre::init.
class Tuner {
 public:
  /// Checks all options and throws InvalidArgument that names every fault. Writes nothing. The objects that the options
  /// refer to are held from here on.
  Tuner(Trainable trainable, TunerOptions options);
  /// \cond mistakes, which do not compile
  template <class F>
    requires(!std::convertible_to<F, Trainable>)
  CADRE_MISTAKE("a training function, no lambda, is given by its name: write tune::Tuner(tune::trainable<f>(), ...)")
  Tuner(F&& function, TunerOptions options);
  template <class WRITE_TunerOptions_BEFORE_THE_BRACES_AND_THE_COMPILER_NAMES_THE_FIELD = void>
  Tuner(Trainable trainable, ...) CADRE_DELETED(
      "these are no TunerOptions: write tune::TunerOptions before the braces, and the compiler names the field");
  /// \endcond

  /// A Tuner that continues the experiment in `directory` where it was interrupted: the same trials with their configs,
  /// results, checkpoints and population. Trials that had not ended run again from their latest checkpoint. Everything
  /// comes from the directory, which may have been moved or renamed; the trainable is found by its name among those of
  /// this program. Throws NotFound when there is no experiment, StorageError when it is damaged or being run,
  /// InvalidArgument when this program has no such trainable or `restore` asks for what contradicts itself.
  ///
  /// `directory` may be the URI of what is published ("s3://bucket/folder/name"), or a published experiment's working
  /// directory. From a URI it continues in the working directory, if that is there and has all that is published, and
  /// else in a new one that is made from what is published. Throws the same, and InvalidArgument when the storage
  /// cannot be used.
  static Tuner restore(const std::filesystem::path& directory, const RestoreOptions& restore = {});
  /// The same with trainable and options, for a program that has them anyway: InvalidArgument lists where they differ
  /// from those of the interrupted run. `verbose` and `log_to_driver` may differ; `name` and `storage_path` do not
  /// count.
  static Tuner restore(const std::filesystem::path& directory, Trainable trainable, TunerOptions options,
                       const RestoreOptions& restore = {});
  /// Whether `directory`, or the URI that it is, holds an experiment, whole or damaged; restore() says which. For a URI
  /// that cannot be read it throws InvalidArgument. An experiment that was interrupted before anything was published is
  /// found in its working directory on this machine, which `publish_config` may place.
  static bool can_restore(const std::filesystem::path& directory, const PublishConfig& publish_config = {});

  /// Runs the experiment to its end in this thread and returns the results of all trials. A trial that fails does not
  /// throw: it is in the results. Throws InvalidArgument when the experiment exists already (see IfExists) or a trial
  /// needs resources that this machine does not have; nothing ran then. Throws StorageError when the directory cannot
  /// be written and EngineError when workers cannot be started or the fork server is gone; what was reported until then
  /// is in the store, and restore() continues from it. A storage that cannot be reached, or does not accept who asks,
  /// is InvalidArgument at the beginning and a message later. May be called once.
  ///
  /// While the disk is full, everybody waits. SIGINT (Ctrl-C), SIGTERM and SIGHUP (the terminal is gone), where the
  /// program has left them at their defaults, end the experiment: trials stop at their next report or after the
  /// stop_grace_period, and fit() throws Interrupted. They may be sent to all processes at once, as service managers
  /// and batch systems do: no trial fails by that. A second signal, a quarter of a second later or more, ends the
  /// program.
  ResultGrid fit();

 private:
  Tuner(Trainable trainable, TunerOptions options, std::optional<RestoreOptions> restore);
  static Tuner continuing(const std::filesystem::path& directory, Trainable trainable, TunerOptions options,
                          const RestoreOptions& restore);
  ResultGrid run();

  std::vector<std::string> restore_notes_ = {};
  std::vector<std::string> notes_ = {};  // about options that were not quite as they should be
  Trainable trainable_;
  TunerOptions options_;
  std::optional<RestoreOptions> restore_;  // empty: a new experiment
  std::vector<ObjectRef> objects_ = {};    // that the options refer to and this process holds, until they are files
  bool fitted_ = false;
};

}  // namespace cadre::tune
