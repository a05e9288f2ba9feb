/// \file
/// Cadre Train: training of one model by several workers at once.
///
///     Value train_mnist(const Config& config) {
///       ...
///       train::report({{"loss", loss}}, [&](const fs::path& directory) { save_state(directory / "model.pt", ...); });
///       return loss;
///     }
///
///     int main(int argc, char** argv) {
///       cadre::init(argc, argv);
///       train::Trainer trainer(fn<train_mnist>, {.scaling_config = {.num_workers = 2}});
///       const train::Result result = trainer.fit();
///     }
///
/// The function runs in every worker; each worker is a process with a rank, counted from 0, and all of them form a
/// worker group. If one of them fails, all are ended and started again from the last committed checkpoint, as often as
/// the FailureConfig allows. Every report is in the store of the run: if the controller is killed, Trainer::restore
/// continues from there. cadre/train_torch.h has the functions for LibTorch.
///
/// Source: Ray Train (ray.train, version 2).
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cadre/checkpoint.h"
#include "cadre/checkpoint_config.h"
#include "cadre/error.h"
#include "cadre/function.h"
#include "cadre/init.h"
#include "cadre/object.h"
#include "cadre/resources.h"
#include "cadre/typed_config.h"
#include "cadre/validation.h"
#include "cadre/value.h"

namespace cadre::train {

using cadre::IfExists;
using cadre::maximize;
using cadre::minimize;
using cadre::Objective;

// ---- Functions that a training function calls. Outside a worker it is rank 0 of 1, and reports are dropped.

/// The way in which a reported checkpoint gets into the run's directory.
enum class CheckpointUploadMode {
  sync,   ///< report() returns when the checkpoint is committed
  async,  ///< report() returns when the result is committed; the checkpoint follows
  /// The checkpoint is already in the run's directory, stays there and keeps its name. It is deleted if the
  /// CheckpointConfig does not keep it.
  no_upload,
};

/// A function that stores a checkpoint and returns its new location: a directory inside the run's directory,
/// TrainContext::get_storage(). `dir_name` is the ReportOptions' checkpoint_dir_name; if that is empty, a generated
/// name that is equal in all ranks and unique among reports. A partial directory of a generated name is removed after a
/// failure.
using CheckpointUploadFunction = std::function<Checkpoint(const Checkpoint& checkpoint, const std::string& dir_name)>;

/// Options of a report. Ranks that report one checkpoint together should pass equal options.
struct ReportOptions {
  CheckpointUploadMode checkpoint_upload_mode = CheckpointUploadMode::sync;  ///< see CheckpointUploadMode
  /// If true, a user's directory is removed when the checkpoint is committed. Default: true with async if it is not in
  /// the run's directory. The directory is moved if it is on the run's file system, else copied and removed.
  /// Directories that Cadre made are always moved.
  std::optional<bool> delete_local_checkpoint_after_upload = {};
  /// Name of the checkpoint's directory, which must be unique; that of rank 0 applies. It consists of letters, digits
  /// and _.,=@+-, and is neither "checkpoint_" and a number nor the name of one of the run's own files: for example
  /// "best" or "checkpoint_best". With no_upload the directory keeps its name, and this is empty or equal to it.
  /// Default: "checkpoint_" and a number.
  std::string checkpoint_dir_name = {};
  /// Replacement for Cadre's own copying and moving. With sync it runs in the reporting thread, with async in a thread
  /// of the worker, for one checkpoint after the other. Ranks that report one checkpoint together must store it in one
  /// directory. If it throws StorageError it is called again, after 1 s and after 2 s; after OutOfSpace it is called
  /// again until there is space.
  CheckpointUploadFunction checkpoint_upload_function = {};
  /// If true, report() returns when the checkpoint is where the run is published (RunConfig::storage_path), so that it
  /// survives the loss of this machine: what would be published within PublishConfig::interval is at once. It waits
  /// while that storage fails. Without effect where nothing is published, and for a report without a checkpoint; not
  /// with async, and not in a run of a trial.
  bool until_published = false;
  /// Request to validate the checkpoint when it is committed, as TrainerOptions::validation specifies; see
  /// cadre/validation.h. Among ranks that report one checkpoint together, the lowest rank that has a part of it
  /// decides.
  ValidationRequest validation = false;
  /// Validator of this report's checkpoint, instead of the ValidationConfig's. Default: none.
  Validator validate = {};
  /// Config of `validate`; the ValidationConfig's config is not used then.
  Config validate_config = {};
  /// Resources of `validate`; default: the ValidationConfig's.
  std::optional<Resources> validate_resources = {};
};

/// Reports one result. Every rank calls it equally often: it returns in all of them when all have called it and the
/// result is committed. The metrics are those of rank 0; metrics of other ranks are checked but not kept. If the run is
/// interrupted the call does not return: it unwinds the function with an exception that is not a std::exception, so
/// that destructors run; do not swallow it.
///
/// Throws InvalidArgument for metrics that cannot be stored: a value over 1 MiB or with more than 53 levels of lists
/// and dictionaries, or metrics of more than 32 MiB in total; for a validation without a checkpoint, without a
/// function, or with a config that cannot be stored. Throws Error if called in another thread than the function's, and
/// in a worker that is no rank, such as a trial's: tune::report is for those. Outside a worker it warns once and does
/// nothing. After an error nothing was reported, and the other ranks keep waiting.
void report(const Metrics& metrics);
/// Reports a result without a checkpoint, while other ranks may have one.
void report(const Metrics& metrics, const ReportOptions& options);
/// Reports a result with a checkpoint: a directory, which is copied or moved. Any ranks may pass one; the files of all
/// of them are merged into one directory. If two ranks have a file of the same path, that of the lower rank is kept.
/// When the call returns the checkpoint is committed, and training can continue from it. Waits while the disk is full.
/// Throws InvalidArgument for options that do not fit together or with the directory, and StorageError if its files
/// cannot be copied or moved, or are neither files nor directories; nothing was reported then.
///
/// With CheckpointUploadMode::async it returns when the result is committed, at most 16 reports before the checkpoint
/// is: a user's directory that is on another file system or is to be kept is copied meanwhile and must not be changed.
/// Checkpoints are committed in the order of their reports, regardless of their modes, and all of them before the run
/// ends, is interrupted, or restarts after a failure. A copy that fails is retried after 1 s and after 2 s; then the
/// group fails, and the error names the checkpoint. On a node of a cluster the rank's worker copies, and a copy is lost
/// with it.
void report(const Metrics& metrics, const Checkpoint& checkpoint, const ReportOptions& options = {});
/// Reports a result with a checkpoint that `write` fills: the directory is made, filled and committed, or removed if
/// `write` throws. If `write` throws OutOfSpace, as save_state does on a full disk, it is called again each second
/// until there is space. With no_upload report() throws InvalidArgument.
void report(const Metrics& metrics, const CheckpointWriter& write, const ReportOptions& options = {});

/// \cond mistakes, which do not compile
template <class T>
  requires std::convertible_to<const T&, std::filesystem::path>
CADRE_MISTAKE("a directory becomes a checkpoint: write Checkpoint::from_directory(path)")
void report(const Metrics& metrics, const T& path, const ReportOptions& options = {});
template <class T>
  requires(cadre::detail::FunctionLike<T> && !std::convertible_to<const T&, CheckpointWriter>)
CADRE_MISTAKE("a checkpoint's writer takes a directory: write [&](const std::filesystem::path& directory) { ... }")
void report(const Metrics& metrics, const T& write, const ReportOptions& options = {});
/// \endcond

/// Returns the checkpoint to continue from: the newest one that was committed when the last report was answered, or the
/// one this worker was started with. Equal in all ranks. Empty at the very beginning, and outside a worker. Its files
/// exist at least until the next report. On a node that does not see the run's directory they are sent there first;
/// throws StorageError if they cannot be.
std::optional<Checkpoint> get_checkpoint();

/// The state that get_all_reported_checkpoints() waits for.
enum class CheckpointConsistency {
  committed,  ///< all checkpoints that this rank has reported are committed
  validated,  ///< as committed, and no validation of them is pending or running
};

/// The progress of a reported checkpoint.
enum class ReportedCheckpointStatus {
  committed,             ///< training can continue from it; no validation was requested
  pending_validation,    ///< its validation is waiting or running
  validated,             ///< its metrics include the validator's
  validation_timed_out,  ///< its validation timed out in its last try
  validation_failed,     ///< its validation failed and has no retries left
};
/// Returns "committed", "pending validation", "validated", "validation timed out" or "validation failed".
std::string to_string(ReportedCheckpointStatus status);

/// A checkpoint that was reported and kept.
struct ReportedCheckpoint {
  Checkpoint checkpoint;  ///< its directory
  Metrics metrics = {};   ///< metrics of its report and of its validation, which take precedence
  ReportedCheckpointStatus status = ReportedCheckpointStatus::committed;  ///< progress
  Metrics reported_metrics = {};                                          ///< metrics of its report
  Metrics validation_metrics = {};    ///< metrics of its validation; empty until that ends
  std::string validation_error = {};  ///< reason why its validation failed; otherwise empty
};

/// Returns the checkpoints that the run keeps, in the order of their reports, including those of earlier attempts.
/// Waits until all checkpoints that this rank has reported with report() so far are committed or validated, at most for
/// `timeout`, and returns the state at that time, without checkpoints whose upload is not complete. Any rank may call
/// it alone, in any thread; report() goes on in its own meanwhile. Empty outside a worker. Throws Error if the run is
/// interrupted meanwhile, and if it would wait for ever: for validations that need resources which the run's own
/// workers occupy.
std::vector<ReportedCheckpoint> get_all_reported_checkpoints(
    CheckpointConsistency consistency = CheckpointConsistency::validated, std::optional<Seconds> timeout = {});

/// Returns an empty directory on the run's own file system, to be filled and passed to report(). Throws StorageError if
/// it cannot be made, and Error outside a worker.
CheckpointDirectory make_checkpoint_directory();

/// Waits until all ranks have called it. Throws Error that names the missing ranks after RunConfig::collective_timeout.
/// Every rank calls its barriers and broadcasts in the same order.
void barrier();
/// Returns the value that rank 0 passes, in all ranks; values of other ranks are ignored. For small values, such as a
/// path or a seed: throws InvalidArgument above 1 MiB, and the errors of barrier().
Value broadcast_from_rank_zero(const Value& value);

/// The storage of a run, that is its directory.
class StorageContext {
 public:
  explicit StorageContext(std::filesystem::path path) : path_(std::move(path)) {}  ///< refers to this directory
  const std::filesystem::path& path() const { return path_; }      ///< returns the directory; empty outside a worker
  operator const std::filesystem::path&() const { return path_; }  ///< returns path()
  /// Returns the path of a file or directory in the run's directory.
  friend std::filesystem::path operator/(const StorageContext& storage, const std::filesystem::path& name) {
    return storage.path_ / name;
  }
  /// Returns a directory for a checkpoint, to be filled and reported with CheckpointUploadMode::no_upload, or left
  /// empty for a checkpoint that only marks a result. It is made unless it exists, so that all ranks may ask for it.
  /// Throws InvalidArgument for a name that no checkpoint may have, and Error outside a worker.
  std::filesystem::path build_checkpoint_path_from_name(const std::string& name) const;

 private:
  std::filesystem::path path_;
};

/// The place of a training function in its run. A validator is rank 0 of 1.
class TrainContext {
 public:
  std::int64_t get_world_rank() const;        ///< returns the rank of this worker, from 0
  std::int64_t get_world_size() const;        ///< returns the number of workers in the group
  std::int64_t get_local_rank() const;        ///< returns the rank of this worker among those on its machine
  std::int64_t get_local_world_size() const;  ///< returns the number of workers of the group on this machine
  std::int64_t get_node_rank() const;         ///< returns the rank of this machine among those of the group
  std::string get_experiment_name() const;    ///< returns the name of the run's directory; empty outside a worker
  StorageContext get_storage() const;         ///< returns the run's directory
  Resources get_resources() const;            ///< returns the resources of this worker
};
/// Returns the context of the calling function.
TrainContext get_context();

// ---- Runs

namespace detail {

using LoopPointer = Value (*)(const Config&);
bool register_loop(std::string_view name, LoopPointer function, cadre::detail::ConfigStruct config);

using cadre::detail::ConfigArgument;

template <class F>
concept TakesStruct = cadre::detail::PlainStruct<ConfigArgument<F>> && std::invocable<F, const ConfigArgument<F>&>;
template <class F>
concept TakesTypedConfig = TakesStruct<F> && cadre::detail::TypedConfig<ConfigArgument<F>>;
template <class F>
concept ReturnsValue = std::is_void_v<typename cadre::detail::Signature<F>::result> ||
                       std::constructible_from<Value, typename cadre::detail::Signature<F>::result>;

template <auto F>
Value call_loop(const Config& config) {
  const auto call = [&]() -> decltype(auto) {
    if constexpr (std::invocable<decltype(F), const Config&>) {
      return F(config);
    } else if constexpr (TakesTypedConfig<decltype(F)>) {
      return F(from_config<ConfigArgument<decltype(F)>>(config));
    } else {
      return F();
    }
  };
  if constexpr (std::is_void_v<decltype(call())>) {
    call();
    return {};
  } else {
    return Value(call());
  }
}

template <auto F>
struct LoopRegistration {
  static bool add() {
    constexpr std::string_view name = cadre::detail::function_name<F>();
    if constexpr (TakesTypedConfig<decltype(F)>) {
      return register_loop(name, &call_loop<F>, cadre::detail::config_struct<ConfigArgument<decltype(F)>>());
    } else {
      return register_loop(name, &call_loop<F>, {});
    }
  }
  static inline const bool done = add();
};

}  // namespace detail

/// A function that a Loop is made from: of a Config, of a plain struct that is made from one, or without arguments.
template <class F>
concept LoopFunction = std::invocable<F, const Config&> || std::invocable<F> || detail::TakesTypedConfig<F>;

/// A training function, by name.
struct Loop {
  Loop() = default;  ///< names no function
  /// Names a function by text; the program must give it as fn<f> somewhere.
  explicit Loop(std::string function) : name(std::move(function)) {}
  /// Names a function: f(const Config&), f() or f(const Settings&) with a struct whose members are the keys of the
  /// config, as for a Tuner (members that the config does not have keep their defaults; the Trainer refuses keys that
  /// no member has, and values of other types). It returns nothing or a type that a Value is made from; the result of
  /// rank 0 is the run's return value.
  template <auto F>
    requires LoopFunction<decltype(F)> && detail::ReturnsValue<decltype(F)>
  Loop(Function<F>) : name(cadre::detail::registered_name<F, detail::LoopRegistration<F>>()) {}
  /// \cond mistakes, which do not compile
  template <auto F>
    requires(!LoopFunction<decltype(F)> && !detail::TakesStruct<decltype(F)>)
  CADRE_MISTAKE(
      "a training function of a run is f(), f(const Config&), or f of a struct with public members only: 1 to 24 of "
      "them, no constructor, no base, no array and no reference")
  Loop(Function<F>);
  template <auto F>
    requires(!LoopFunction<decltype(F)> && detail::TakesStruct<decltype(F)>)
  Loop(Function<F>)
      : name(cadre::detail::refuse_member<cadre::detail::unsupported_member<detail::ConfigArgument<decltype(F)>>()>()) {
  }
  template <auto F>
    requires LoopFunction<decltype(F)> && (!detail::ReturnsValue<decltype(F)>)
  CADRE_MISTAKE("a training function returns nothing, or a bool, a number, a text, a list or a dictionary")
  Loop(Function<F>);
  static constexpr std::size_t kMembers = 2;  // stored by their names: cadre/detail/member_names.h
  /// \endcond

  std::string name = {};                               ///< name of the function, without its namespaces
  HostFunction host_function = {};                     ///< set if it is one of a host, not of the program: cadre/host.h
  bool operator==(const Loop& other) const = default;  ///< compares the members
};

/// A number of workers, or a range of numbers: a group starts with as many as there are resources for, and is resized
/// when the resources change.
struct WorkerRange {
  std::int64_t min = 1;  ///< at least 1; with resources for fewer workers the run waits
  std::int64_t max = 1;  ///< at least min

  WorkerRange() = default;  ///< makes a range of exactly one worker
  /// Makes a fixed number of workers.
  template <std::integral Number>
    requires(!std::same_as<Number, bool>)
  constexpr WorkerRange(Number number)
      : min(static_cast<std::int64_t>(number)), max(static_cast<std::int64_t>(number)) {}
  /// Makes a range, both ends included.
  constexpr WorkerRange(std::int64_t fewest, std::int64_t most) : min(fewest), max(most) {}
  constexpr bool is_elastic() const { return min != max; }  ///< returns true if more than one number is possible
  bool operator==(const WorkerRange&) const = default;      ///< compares both numbers
};

/// The number of workers and their resources.
struct ScalingConfig {
  /// Worker processes: a number, or {fewest, most}. With a range, the group starts with as many workers as the
  /// resources allow. When the resources change, it is ended and restarted with another number of workers, right after
  /// the next checkpoint that it reports is committed: no step is lost or repeated, no failure is counted, and a
  /// function that never reports a checkpoint is not resized. Functions should divide their data by
  /// get_context().get_world_size().
  WorkerRange num_workers = 1;
  bool use_gpu = false;  ///< a GPU for each worker
  /// Resources of each worker. Default: one CPU, and with use_gpu one GPU. If they have GPUs, use_gpu must be true, and
  /// vice versa.
  std::optional<Resources> resources_per_worker = {};
  PlacementStrategy placement_strategy = PlacementStrategy::pack;  ///< placement on a cluster
  /// Kind of GPUs for each worker, such as "H100". Default: that of resources_per_worker, else any.
  std::string accelerator_type = {};
  /// Labels that a worker's machine must have, in addition to those of resources_per_worker: see Resources::labels.
  std::map<std::string, std::string> label_selector = {};
  /// Interval at which a run with a range of workers checks the available resources; above 0.
  Seconds elastic_resize_monitor_interval = std::chrono::minutes(1);
  /// Returns the resources of one worker.
  Resources worker_resources() const;
  bool operator==(const ScalingConfig&) const = default;  ///< compares all fields
};

/// Retries of a run that fails. On a retry all workers are ended, and started again from the last committed checkpoint.
/// There are three kinds of failures with separate budgets, each 0 or more, or -1: unlimited.
struct FailureConfig {
  /// Budget of the whole run for these failures: an exception that leaves the function in any rank, a process that ends
  /// by itself or by a signal, ranks that do not report equally often, a checkpoint that cannot be uploaded. From the
  /// third failure in a row without a new report, the run waits before the retry: 1 s, then twice as long each time, at
  /// most 60 s.
  std::int64_t max_failures = 0;
  /// Budget for failures in a row of these kinds: a worker that cannot be started, or a group that fails before the
  /// function has begun in any rank, for example because its process group cannot be formed. The run waits 1 s after
  /// the first one, then as above.
  std::int64_t max_start_failures = 3;
  /// Budget of the whole run for preemptions: a worker is ended by a SIGTERM that Cadre has not sent and that only this
  /// worker receives, for example because its machine is reclaimed. Subsequent errors of other ranks are attributed to
  /// it. A worker that is lost with its node is a preemption, too. Waits as for max_failures. A signal to all processes
  /// of the run interrupts it (see Trainer::fit) and is no failure.
  std::int64_t max_preemption_failures = -1;
  bool operator==(const FailureConfig&) const = default;  ///< compares all budgets
};

/// Result files of a run, and display of its workers' output.
struct LoggingConfig {
  Loggers loggers = {};  ///< result files in the run's directory; default: all
  /// If true, fit() repeats the output of the workers within 100 ms, each line with its rank: their standard output on
  /// standard output, and their standard error on standard error. If a worker prints more than 64 KiB in that time,
  /// only the newest lines are repeated. In any case all output is written to files in the folders rank_0, rank_1 and
  /// so on, each of which keeps 64 MiB. With verbose 0 nothing is repeated.
  bool log_to_driver = false;
  bool operator==(const LoggingConfig&) const = default;  ///< compares all settings
};

class Callback;  // cadre/train_callback.h

/// Callbacks of a run, in calling order; see cadre/train_callback.h.
using Callbacks = std::vector<std::shared_ptr<Callback>>;

/// Storage, failure handling and output of a run.
struct RunConfig {
  /// Name of its directory. Default: the function's name and the time.
  std::string name = {};
  /// Action if a run of that name exists. With IfExists::restore a program that is started again continues its run;
  /// that requires a name. Ignored for a run inside a trial: its trial starts it anew.
  IfExists if_exists = IfExists::fail;
  /// Parent folder of the run's directory: a path, or the URI of a storage ("s3://bucket/folder", also gs, abfs and
  /// file). A run that is not on a local disk is published, see PublishConfig. Default: ~/cadre_results.
  std::filesystem::path storage_path = {};
  PublishConfig publish_config = {};  ///< used if `storage_path` is not on a local disk
  FailureConfig failure_config = {};  ///< retries after a failure
  /// Checkpoints to keep. Options for trainable classes must not be set.
  CheckpointConfig checkpoint_config = {};
  LoggingConfig logging_config = {};  ///< result files, and display of the workers' output
  /// Time that ranks wait for each other in report(), barrier() and broadcast_from_rank_zero(). A rank that is missing
  /// then fails the run, and the error names it.
  Seconds collective_timeout = std::chrono::minutes(30);
  /// Time that workers which were asked to stop have until they are ended by force.
  Seconds stop_grace_period = std::chrono::seconds(30);
  int verbose = 1;  ///< 0: failures only; 1: the beginning, the end and every report
  /// If true, each rank runs in its folder rank_0, rank_1 and so on of the run's directory, so that files which it
  /// writes with relative paths are created there. Relative paths given to the program, such as those of its data, must
  /// then be made absolute before the ranks get them. Otherwise all ranks run in the directory in which the program
  /// called cadre::init.
  bool chdir_to_rank_dir = false;
  Callbacks callbacks = {};  ///< called as the run progresses; not stored, so a restore must be given them again
};

/// All options of a run except its function.
struct TrainerOptions {
  Config train_loop_config = {};      ///< config of the function
  ScalingConfig scaling_config = {};  ///< number and resources of the workers
  RunConfig run_config = {};          ///< storage, failure handling and output
  ValidationConfig validation = {};   ///< validation of its checkpoints
  /// Datasets by name, {{"train", data::read_parquet(path)}}: ranks get their shares from data::get_dataset_shard of
  /// cadre/data.h.
  Dict datasets = {};
};

/// The result of a run. A value.
struct Result {
  /// Metrics of the last report; empty if there was none. The metrics of its checkpoint's validation are under
  /// "validation", as in the result files: `metrics.get<double>("validation/accuracy")`.
  Metrics metrics = {};
  std::optional<Checkpoint> checkpoint = {};  ///< latest checkpoint
  /// The kept checkpoints with their metrics, best last, as ranked by the CheckpointConfig.
  std::vector<ReportedCheckpoint> best_checkpoints = {};
  /// Metrics of all reports in order; a report that was repeated occurs once.
  std::vector<Metrics> metrics_history = {};
  /// For each of them the metrics of its checkpoint's validation; empty if there was none, or it has not ended.
  std::vector<Metrics> validation_history = {};
  std::filesystem::path path = {};        ///< the run's directory
  Config config = {};                     ///< config of the function
  Value return_value = {};                ///< return value of rank 0's function; null until the run has finished
  bool finished = false;                  ///< true if the run has come to its end, validations included
  std::optional<std::string> error = {};  ///< reason why the run failed; empty if it has not
  std::int64_t attempts = 0;              ///< worker groups started
  /// Internal: keeps the files that were downloaded to read a published run. Shared by copies.
  std::shared_ptr<const std::filesystem::path> copy = {};

  /// Reads the current result in a run's directory: of a run that has finished, failed, was interrupted or killed, or
  /// is being run by another process. Nothing is run, repaired or changed. Throws NotFound if there is no run,
  /// StorageError for a store that is damaged or of another version. `directory` may be the URI of a published run;
  /// throws InvalidArgument then for a storage that cannot be read.
  static Result from_directory(const std::filesystem::path& directory);
  /// Returns the kept checkpoint with the best value of a metric: get_best_checkpoint(minimize("loss")), or with a name
  /// and a mode; among equals the first in best_checkpoints. Throws InvalidArgument if no direction is given, NotFound
  /// if no checkpoint has a finite value.
  Checkpoint get_best_checkpoint(const Objective& metric, std::optional<Mode> mode = {}) const;
};

/// Returns a timeline of a run as an SVG document, from its store: its worker groups, the uploads of its checkpoints,
/// and its validations; a group or a validation that failed has a colour of its own. The run may still be running.
/// Throws NotFound if there is no training run in the directory, and StorageError for a store that is damaged.
std::string timeline_svg(const std::filesystem::path& directory);
/// Writes the same picture to a file, as SVG or PNG by its ending, which is replaced atomically. Throws InvalidArgument
/// for another ending; StorageError, too, if the file cannot be written; and for a PNG NotFound if librsvg, which draws
/// it, is not installed, with the name of its package.
void write_timeline(const std::filesystem::path& directory, const std::filesystem::path& file);

/// Thrown if the run has failed more often than its FailureConfig allows. Its directory has everything that was
/// reported, and Trainer::restore retries it.
class TrainingFailed : public Error {
 public:
  using Error::Error;
};

/// Options of a restore that are not stored with the run.
struct RestoreOptions {
  Callbacks callbacks = {};           ///< as RunConfig::callbacks; their state is not restored
  PublishConfig publish_config = {};  ///< for a published run
};

/// A training run. Used in one thread.
///
/// A trial of Cadre Tune may have a training run, if its trainable has a PlacementGroup with a bundle for each worker
/// after its own (tune::with_resources). The trial then reports the run's reports, with its checkpoints; the run starts
/// from the trial's checkpoint, and pauses and stops with the trial. It lies in the trial's directory, where the run of
/// the trial's next attempt replaces it. When the experiment stops the trial, fit() does not return: it unwinds the
/// function, after asynchronous uploads of checkpoints are complete.
class Trainer {
 public:
  /// Checks all options; throws InvalidArgument that names every error, before anything runs.
  Trainer(Loop loop, TrainerOptions options);
  /// \cond mistakes, which do not compile
  template <class F>
    requires(!std::convertible_to<F, Loop> && cadre::detail::NotFn<F>)
  CADRE_MISTAKE("a training function, no lambda, is given by its name: write train::Trainer(fn<f>, ...)")
  Trainer(F&& function, TrainerOptions options);
  template <class WRITE_TrainerOptions_BEFORE_THE_BRACES_AND_THE_COMPILER_NAMES_THE_FIELD = void>
  Trainer(Loop loop, ...) CADRE_DELETED(
      "these are no TrainerOptions: write train::TrainerOptions before the braces, and the compiler names the field");
  /// \endcond
  virtual ~Trainer() = default;
  Trainer(Trainer&&) noexcept = default;             ///< the moved-from Trainer may only be destroyed
  Trainer& operator=(Trainer&&) noexcept = default;  ///< see the move constructor

  /// Returns true if `directory`, a path or a URI, holds a training run, intact or damaged; restore() distinguishes
  /// them. Throws InvalidArgument for a URI that cannot be read. A run that was interrupted before anything was
  /// published is found in its working directory on this machine, whose location `publish_config` may set.
  static bool can_restore(const std::filesystem::path& directory, const PublishConfig& publish_config = {});
  /// Returns a Trainer that continues the run in a directory from its last committed checkpoint, with its original
  /// options. A run that failed is retried, with a new budget of failures; a run that finished stays as it is, and
  /// fit() returns its result. Throws NotFound if there is no run, StorageError if its store is damaged, and
  /// InvalidArgument if this program does not have its function.
  ///
  /// `directory` may be the URI of a published run ("s3://bucket/folder/name"), or its working directory. Given a URI,
  /// the run continues in the working directory if that exists and has everything that is published, and otherwise in a
  /// new one that is made from the published files. Throws InvalidArgument, too, if the storage cannot be used.
  static Trainer restore(const std::filesystem::path& directory, const RestoreOptions& restore = {});

  /// Runs the training to its end, once. SIGINT (Ctrl-C), SIGTERM and SIGHUP (the terminal was closed), if the program
  /// has left them at their defaults, end it in an orderly way: workers stop at their next report, which is committed,
  /// and fit() throws Interrupted. The signals may be sent to all processes at once. A second signal, at least a
  /// quarter of a second later, ends the program.
  /// Throws InvalidArgument if the run exists already (see IfExists), is run by another process, or needs more than the
  /// machine has; TrainingFailed if it failed more often than its FailureConfig allows; EngineError if the fork server
  /// has ended; StorageError if the store cannot be written. Controller and workers wait while the disk is full.
  Result fit();

 protected:
  /// Makes a trainer for a library: workers form a group with this backend (worker/group_backend.h) before the function
  /// runs.
  Trainer(Loop loop, TrainerOptions options, std::string backend, Config backend_options);

 private:
  struct Restored {};
  Trainer(Restored, Loop loop, TrainerOptions options, std::string backend, Config backend_options);
  Result continue_in(const std::filesystem::path& existing) const;
  Result run();

  Loop loop_;
  TrainerOptions options_;
  std::string backend_;  // empty: none
  Config backend_options_;
  std::vector<std::string> notes_ = {};
  bool restored_ = false;
  bool fitted_ = false;
};

}  // namespace cadre::train
