/// \file
/// Cadre Train: one model, trained by several workers at once.
///
///     Value train_mnist(const Config& config) {
///       ...
///       train::report({{"loss", loss}}, [&](const fs::path& directory) { save_state(directory / "model.pt", ...); });
///       return loss;
///     }
///
///     int main(int argc, char** argv) {
///       cadre::init(argc, argv);
///       train::Trainer trainer(train::loop<train_mnist>(), {.scaling_config = {.num_workers = 2}});
///       const train::Result result = trainer.fit();
///     }
///
/// The function runs in every worker, each of which is a process of its own with a rank from 0 on; together they are a
/// worker group. When one of them fails, all are ended and started again from the last committed checkpoint, as often
/// as the FailureConfig lets them. Everything that was reported is in the store of the run: when the controller is
/// killed, Trainer::restore goes on from there. cadre/train_torch.h has what LibTorch needs.
///
/// Source: Ray Train (ray.train, version 2).
#pragma once

#include <chrono>
#include <concepts>
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
#include "cadre/detail/function_name.h"
#include "cadre/error.h"
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

// ---- What a training function calls. Outside a worker it is alone: rank 0 of 1, and reports go nowhere.

/// How a checkpoint that is reported gets to where the run keeps its checkpoints.
enum class CheckpointUploadMode {
  sync,   ///< report() returns when the checkpoint is committed
  async,  ///< report() returns when the result is committed; the checkpoint follows
  /// The checkpoint lies in the run's directory already, becomes one where it is, and keeps its name. It is deleted
  /// when the CheckpointConfig does not keep it.
  no_upload,
};

/// Brings a checkpoint to where it is to be, and says where that is: a directory inside the run's,
/// TrainContext::get_storage(). `dir_name` is the ReportOptions' checkpoint_dir_name, or one that is the same in all
/// ranks and in no other report; a half-made directory of that second kind is removed when something fails.
using CheckpointUploadFunction = std::function<Checkpoint(const Checkpoint& checkpoint, const std::string& dir_name)>;

/// What becomes of a reported checkpoint. Ranks that report one together should say the same.
struct ReportOptions {
  CheckpointUploadMode checkpoint_upload_mode = CheckpointUploadMode::sync;  ///< see there
  /// Whether a directory of the user's goes when the checkpoint is committed. Default: with async, if it does not lie
  /// in the run's directory. It is moved where it lies on the run's file system, else copied and removed. Directories
  /// of Cadre's are always moved.
  std::optional<bool> delete_local_checkpoint_after_upload = {};
  /// The name of the checkpoint's directory, which no other one may have; that of rank 0 counts. It is made of letters,
  /// digits and _.,=@+-, and is neither "checkpoint_" and a number nor the name of a file of the run's own: "best" or
  /// "checkpoint_best". With no_upload the directory keeps its name, and this is left out or says the same. Default:
  /// "checkpoint_" and a number.
  std::string checkpoint_dir_name = {};
  /// Takes the place of Cadre's own copying and moving. With sync it runs in the thread that reports, with async in a
  /// thread of the worker, one after the other. Ranks that pass one together must make one directory together. One that
  /// throws StorageError is called again, after 1 s and after 2 s; OutOfSpace makes it wait until there is space.
  CheckpointUploadFunction checkpoint_upload_function = {};
  /// Whether the checkpoint is validated when it is committed, as TrainerOptions::validation says; see
  /// cadre/validation.h. Of ranks that report one together the lowest one that has a part of it says so.
  ValidationRequest validation = false;
  /// The same with a function of this report's, in the place of the ValidationConfig's. Default: none.
  Validator validate = {};
  /// What that function gets; the ValidationConfig's config does not count then.
  Config validate_config = {};
};

/// Reports one result. Every rank calls it equally often: it returns in all of them when all have called it and the
/// result is committed. The metrics are those of rank 0; what other ranks pass is checked, and not kept. When the run
/// is interrupted the call does not return: it unwinds the function with an exception that is not a std::exception, so
/// that destructors run; do not swallow it.
///
/// Throws InvalidArgument for what cannot be stored: a value over 1 MiB or with more than 53 levels of lists and
/// dictionaries, or metrics of more than 32 MiB together; for a validation without a checkpoint, without a function, or
/// with a config that cannot be stored; Error when called in another thread than the function's.
/// Nothing was reported then, and the other ranks wait on.
void report(const Metrics& metrics);
/// The same where other ranks may have a checkpoint and this one has none.
void report(const Metrics& metrics, const ReportOptions& options);
/// The same with a checkpoint: a directory, which is copied or moved. Any ranks may pass one; the files of all of them
/// become one directory. Where two ranks have a file of the same path, that of the lower rank stays. When the call
/// returns the checkpoint is committed, and training can go on from it. Waits while the disk is full. Throws
/// InvalidArgument for options that do not fit together or with the directory, and StorageError when its files cannot
/// be copied or moved, or are something else than files and directories; nothing was reported then.
///
/// With CheckpointUploadMode::async it returns when the result is committed, at most 16 reports before the checkpoint
/// is: a directory of the user's on another file system, or one that is to stay, is copied meanwhile and must not be
/// changed. Checkpoints are committed in the order of their reports, whatever their modes, and all of them before the
/// run ends, is interrupted, or begins again after a failure. A copy that fails is tried again, after 1 s and after 2
/// s; then the group fails, and the error names the checkpoint.
void report(const Metrics& metrics, const Checkpoint& checkpoint, const ReportOptions& options = {});
/// The same with a checkpoint that `write` fills: the directory is made, filled and committed, or removed when `write`
/// throws. When it throws OutOfSpace, as save_state does on a full disk, it is called again each second until there is
/// space. With no_upload it throws InvalidArgument.
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

/// The checkpoint to go on from: the newest one that was committed when the last report was answered, or the one this
/// worker was started with. The same in all ranks. Empty at the very beginning, and outside a worker. Its files stay at
/// least until the next report.
std::optional<Checkpoint> get_checkpoint();

/// What get_all_reported_checkpoints() waits for.
enum class CheckpointConsistency {
  committed,  ///< that everything this rank has reported is committed
  validated,  ///< and that no validation of it waits or goes on
};

/// How far a reported checkpoint has got.
enum class ReportedCheckpointStatus {
  committed,             ///< training can go on from it, and nobody asked for more
  pending_validation,    ///< its validation waits or goes on
  validated,             ///< its metrics have the validator's
  validation_timed_out,  ///< its validation took too long, in its last try
  validation_failed,     ///< its validation has failed as often as it may
};
/// "committed", "pending validation", "validated", "validation timed out", "validation failed".
std::string to_string(ReportedCheckpointStatus status);

/// A checkpoint that was reported and is kept.
struct ReportedCheckpoint {
  Checkpoint checkpoint;  ///< its directory
  Metrics metrics = {};   ///< that it was reported with, and those of its validation, which count where both have one
  ReportedCheckpointStatus status = ReportedCheckpointStatus::committed;  ///< how far it has got
  Metrics reported_metrics = {};                                          ///< that it was reported with
  Metrics validation_metrics = {};                                        ///< of its validation; empty before its end
  std::string validation_error = {};  ///< why it could not be validated; empty where that did not happen
};

/// The checkpoints that the run keeps, in the order of their reports, also those of earlier attempts. Waits until all
/// that this rank has reported with report() so far is committed or validated, at most for `timeout`, and returns what
/// there is then; what is still being uploaded is not. Any rank may call it alone, in any thread that does not report.
/// Empty outside a worker. Throws Error where it would wait for ever: for validations that need resources which the
/// run's own workers have.
std::vector<ReportedCheckpoint> get_all_reported_checkpoints(
    CheckpointConsistency consistency = CheckpointConsistency::validated, std::optional<Seconds> timeout = {});

/// An empty directory on the run's own file system, to be filled and given to report(). Throws StorageError, and Error
/// outside a worker.
CheckpointDirectory make_checkpoint_directory();

/// Returns when all ranks have called it. Throws Error that names the ranks that have not after
/// RunConfig::collective_timeout. Every rank calls its barriers and broadcasts in the same order.
void barrier();
/// The value that rank 0 passes, in all ranks; what the others pass is not looked at. For small ones, as the path of a
/// file or a seed: at most 1 MiB, or InvalidArgument. Throws what barrier() does.
Value broadcast_from_rank_zero(const Value& value);

/// The directory of a run.
class StorageContext {
 public:
  explicit StorageContext(std::filesystem::path path) : path_(std::move(path)) {}  ///< that directory
  const std::filesystem::path& path() const { return path_; }      ///< the directory; empty outside a worker
  operator const std::filesystem::path&() const { return path_; }  ///< the same
  /// What has this name in it.
  friend std::filesystem::path operator/(const StorageContext& storage, const std::filesystem::path& name) {
    return storage.path_ / name;
  }
  /// A directory for a checkpoint, to be filled and reported with CheckpointUploadMode::no_upload, or left empty where
  /// a checkpoint stands for a result only. It is made where it is not there yet, so that all ranks may ask for it.
  /// Throws InvalidArgument for a name that no checkpoint may have, and Error outside a worker.
  std::filesystem::path build_checkpoint_path_from_name(const std::string& name) const;

 private:
  std::filesystem::path path_;
};

/// Where a training function runs, or a validator, which is alone.
class TrainContext {
 public:
  std::int64_t get_world_rank() const;        ///< of this worker, from 0 on
  std::int64_t get_world_size() const;        ///< workers in the group
  std::int64_t get_local_rank() const;        ///< of this worker among those on its machine
  std::int64_t get_local_world_size() const;  ///< workers of the group on this machine
  std::int64_t get_node_rank() const;         ///< of this machine among those of the group
  std::string get_experiment_name() const;    ///< the name of the run's directory; empty outside a worker
  StorageContext get_storage() const;         ///< the run's directory
  Resources get_resources() const;            ///< of this worker
};
/// The context of the function that calls.
TrainContext get_context();

// ---- What a run is

/// Names a training function. Made by loop<f>().
struct Loop {
  std::string name = {};                               ///< of the function, without its namespaces
  bool operator==(const Loop& other) const = default;  ///< the same function
};

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

/// A function that loop() takes: of a Config, of a plain struct that is made from one, or of nothing.
template <class F>
concept LoopFunction = std::invocable<F, const Config&> || std::invocable<F> || detail::TakesTypedConfig<F>;

/// The training function F: f(const Config&), f() or f(const Settings&) with a struct whose members are the keys of the
/// config, as tune::trainable() takes it too (members that the config does not have keep their defaults; the Trainer
/// refuses keys that no member has, and values of other types). It returns nothing or what a Value is made from; that
/// of rank 0 is the run's return value. Like a trainable it is found by its name, in every process of the program.
template <auto F>
  requires LoopFunction<decltype(F)> && detail::ReturnsValue<decltype(F)>
Loop loop() {
  return {cadre::detail::registered_name<F, detail::LoopRegistration<F>>()};
}
/// \cond a mistake, which does not compile
template <auto F>
  requires(!LoopFunction<decltype(F)> && !detail::TakesStruct<decltype(F)>)
CADRE_MISTAKE(
    "a training function of a run is f(), f(const Config&), or f of a struct with public members only: 1 to 24 of "
    "them, no constructor, no base, no array and no reference")
Loop loop();
template <auto F, auto Member = cadre::detail::unsupported_member<detail::ConfigArgument<decltype(F)>>()>
  requires(!LoopFunction<decltype(F)> && detail::TakesStruct<decltype(F)>)
CADRE_UNSUPPORTED_MEMBER Loop loop();
template <auto F>
  requires LoopFunction<decltype(F)> && (!detail::ReturnsValue<decltype(F)>)
CADRE_MISTAKE("a training function returns nothing, or a bool, a number, a text, a list or a dictionary")
Loop loop();
/// \endcond

/// A number of workers, or a range of it: a group begins with as many as there are resources for, and changes when they
/// do.
struct WorkerRange {
  std::int64_t min = 1;  ///< at least 1; with resources for fewer the run waits
  std::int64_t max = 1;  ///< at least min

  WorkerRange() = default;  ///< 1
  /// This many.
  template <std::integral Number>
    requires(!std::same_as<Number, bool>)
  constexpr WorkerRange(Number number)
      : min(static_cast<std::int64_t>(number)), max(static_cast<std::int64_t>(number)) {}
  /// From one number to another.
  constexpr WorkerRange(std::int64_t fewest, std::int64_t most) : min(fewest), max(most) {}
  constexpr bool is_elastic() const { return min != max; }  ///< whether there is more than one possible number
  bool operator==(const WorkerRange&) const = default;      ///< the same numbers
};

/// How many workers there are, and what each of them needs.
struct ScalingConfig {
  /// Processes: a number, or {fewest, most}. Of a range the group is as large as the resources allow when it begins.
  /// When they change, it is ended and begins anew with another number of workers, right after the next checkpoint that
  /// it reports is committed: no step is lost or repeated, no failure is counted, and a function that never reports a
  /// checkpoint stays as it is. Functions read get_context().get_world_size(), and share their data by it.
  WorkerRange num_workers = 1;
  bool use_gpu = false;  ///< a GPU for each worker
  /// Of each worker. Default: one CPU, and with use_gpu one GPU. With GPUs it must say use_gpu too, and the other way
  /// round.
  std::optional<Resources> resources_per_worker = {};
  PlacementStrategy placement_strategy = PlacementStrategy::pack;  ///< on a cluster
  /// The kind of GPUs that each worker gets, such as "H100". Default: that of resources_per_worker, else any.
  std::string accelerator_type = {};
  /// Which labels a worker's machine is to have, beside those of resources_per_worker: see Resources::labels.
  std::map<std::string, std::string> label_selector = {};
  /// How often a run with a range of workers looks at the resources there are; above 0.
  Seconds elastic_resize_monitor_interval = std::chrono::minutes(1);
  /// Of one worker.
  Resources worker_resources() const;
  bool operator==(const ScalingConfig&) const = default;  ///< the same workers
};

/// How often a run that fails is tried again. All workers are then ended, and started again from the last committed
/// checkpoint. There are three kinds of failures, each with a budget of its own; all are 0 or more, or -1: without
/// limit.
struct FailureConfig {
  /// Of the whole run: an exception that leaves the function in any rank, a process that ends by itself or by a signal,
  /// ranks that do not report equally often, a checkpoint that cannot be uploaded. From the third one in a row without
  /// a new report on the run waits before it is tried again: 1 s, then twice as long each time, at most 60 s.
  std::int64_t max_failures = 0;
  /// In a row: a worker that cannot be started, or a group that fails before the function has begun in any rank, as
  /// when its process group cannot be formed. The run waits 1 s after the first one, then as above.
  std::int64_t max_start_failures = 3;
  /// Counts over the whole run: a worker is ended by a SIGTERM that Cadre has not sent and that only this worker gets,
  /// as when its machine is taken away. Whatever other ranks say then follows from that. Waits as for max_failures.
  /// A signal to all processes of the run interrupts it (see Trainer::fit) and is no failure.
  std::int64_t max_preemption_failures = -1;
};

/// What a run writes for people and their programs beside its store, and what it shows of its workers.
struct LoggingConfig {
  Loggers loggers = {};  ///< which result files there are in its directory; default: all
  /// Whether fit() repeats what the workers print, each line with the rank that has printed it: their standard output
  /// on standard output, within 100 ms, and their standard error on standard error. Of a worker that prints more than
  /// 64 KiB in that time only the newest lines. In any case all of it goes into files in the folders rank_0, rank_1 and
  /// so on, each of which keeps 64 MiB. With verbose 0 nothing is repeated.
  bool log_to_driver = false;
  bool operator==(const LoggingConfig&) const = default;  ///< the same settings
};

class Callback;  // cadre/train_callback.h

/// Called in this order, each as cadre/train_callback.h says.
using Callbacks = std::vector<std::shared_ptr<Callback>>;

/// Where a run lies, and how it goes on.
struct RunConfig {
  std::string name = {};  ///< of its directory; default: that of the function and the time
  /// Says what happens where a run of that name exists. With IfExists::restore the same program continues when it
  /// is started again; that needs a name. Of a run of a trial it does not count: its trial begins it anew.
  IfExists if_exists = IfExists::fail;
  /// Of the directory above it: a path, or the URI of a storage ("s3://bucket/folder", also gs, abfs and file). What is
  /// no local disk gets everything published, see PublishConfig. Default: ~/cadre_results.
  std::filesystem::path storage_path = {};
  PublishConfig publish_config = {};  ///< counts where `storage_path` is no local disk
  FailureConfig failure_config = {};  ///< what a failure leads to
  /// Which checkpoints are kept. Those of its options that concern trainable classes may not be set.
  CheckpointConfig checkpoint_config = {};
  LoggingConfig logging_config = {};  ///< which result files there are, and what is shown of the workers
  /// How long ranks wait for each other in report(), barrier() and broadcast_from_rank_zero(). One that is missing then
  /// fails the run, and the error names it.
  Seconds collective_timeout = std::chrono::minutes(30);
  /// Workers that were told to stop have this long until they are ended by force.
  Seconds stop_grace_period = std::chrono::seconds(30);
  int verbose = 1;  ///< 0: failures only; 1: the beginning, the end and every report
  /// Lets each rank run in its folder rank_0, rank_1 and so on of the run's directory, so that files with relative
  /// paths that it writes lie there. Relative paths that the program has been given, as those of its data, must then be
  /// made absolute before the ranks get them. Otherwise all run where the program was when it called cadre::init.
  bool chdir_to_rank_dir = false;
  Callbacks callbacks = {};  ///< what is called as the run goes on; not stored, so a restore is given them again
};

/// Everything about a run but its function.
struct TrainerOptions {
  Config train_loop_config = {};      ///< what the function gets
  ScalingConfig scaling_config = {};  ///< how many workers there are
  RunConfig run_config = {};          ///< where it lies, and how it goes on
  ValidationConfig validation = {};   ///< how its checkpoints are validated
  /// Datasets by name, {{"train", data::read_parquet(path)}}: ranks get their shares with data::get_dataset_shard of
  /// cadre/data.h.
  Dict datasets = {};
};

/// How a run has come out. A value.
struct Result {
  Metrics metrics = {};                       ///< of the last report; empty where there was none
  std::optional<Checkpoint> checkpoint = {};  ///< the latest
  /// The kept checkpoints with their metrics, best last, as the CheckpointConfig says.
  std::vector<ReportedCheckpoint> best_checkpoints = {};
  std::vector<Metrics> metrics_history = {};  ///< of all reports in order; one that was repeated is there once
  std::filesystem::path path = {};            ///< the run's directory
  Config config = {};                         ///< what the function got
  Value return_value = {};                    ///< of rank 0's function; null where the run has not finished
  std::optional<std::string> error = {};      ///< why the run failed
  std::int64_t attempts = 0;                  ///< worker groups started
  /// Cadre's own: keeps what was downloaded to read a published run. Shared by copies.
  std::shared_ptr<const std::filesystem::path> copy = {};

  /// The result in a run's directory as it is now: of a run that has finished, failed, was interrupted or killed, or is
  /// being run by another process. Nothing is run, repaired or changed. Throws NotFound when there is no run,
  /// StorageError for a store that is damaged or of another version. The URI of a published run may stand for the
  /// directory; throws InvalidArgument then for a storage that cannot be read.
  static Result from_directory(const std::filesystem::path& directory);
  /// The kept checkpoint with the best value of a metric, get_best_checkpoint(minimize("loss")) or with a name and a
  /// mode; of equals the first in best_checkpoints. Throws InvalidArgument where no direction is given, NotFound where
  /// none has a finite one.
  Checkpoint get_best_checkpoint(const Objective& metric, std::optional<Mode> mode = {}) const;
};

/// A run over time as an SVG document: its worker groups, its checkpoints on their way, and its validations, as its
/// store has them; a group or a validation that has failed has a colour of its own. The run may be going on. Throws
/// NotFound where there is no training run in the directory, and StorageError for a store that is damaged.
std::string timeline_svg(const std::filesystem::path& directory);
/// The same into a file, which is replaced in one step. Throws StorageError, too, when it cannot be written.
void write_timeline_svg(const std::filesystem::path& directory, const std::filesystem::path& file);

/// The run has failed more often than its FailureConfig allows. Its directory has everything that was reported, and
/// Trainer::restore tries it again.
class TrainingFailed : public Error {
 public:
  using Error::Error;
};

/// What a run that is continued gets anew.
struct RestoreOptions {
  Callbacks callbacks = {};           ///< as RunConfig::callbacks; they begin anew
  PublishConfig publish_config = {};  ///< of a run that is published
};

/// A training run. Used in one thread.
///
/// A trial of Cadre Tune may have one too, where its trainable has a PlacementGroup with a bundle for each worker
/// behind its own (tune::with_resources). The trial then reports what the run reports, with its checkpoints; the run
/// begins from the trial's checkpoint, waits and stops with it, and lies in the trial's directory, where that of the
/// trial's next attempt replaces it. fit() does not return when the experiment stops the trial: it unwinds the
/// function. Checkpoints that are uploaded asynchronously are waited for.
class Trainer {
 public:
  /// Throws InvalidArgument with everything that is wrong with the options, before anything runs.
  Trainer(Loop loop, TrainerOptions options);
  /// \cond mistakes, which do not compile
  template <class F>
    requires(!std::convertible_to<F, Loop>)
  CADRE_MISTAKE("a training function, no lambda, is given by its name: write train::Trainer(train::loop<f>(), ...)")
  Trainer(F&& function, TrainerOptions options);
  template <class WRITE_TrainerOptions_BEFORE_THE_BRACES_AND_THE_COMPILER_NAMES_THE_FIELD = void>
  Trainer(Loop loop, ...) CADRE_DELETED(
      "these are no TrainerOptions: write train::TrainerOptions before the braces, and the compiler names the field");
  /// \endcond
  virtual ~Trainer() = default;
  Trainer(Trainer&&) noexcept = default;             ///< the other one may only be destroyed
  Trainer& operator=(Trainer&&) noexcept = default;  ///< see above

  /// Returns whether a directory, or the URI that it is, holds a run that restore() can continue. A run that was
  /// interrupted before anything was published is found in its working directory on this machine, which
  /// `publish_config` may place.
  static bool can_restore(const std::filesystem::path& directory, const PublishConfig& publish_config = {});
  /// A Trainer that continues the run in a directory from its last committed checkpoint, with the options that it was
  /// begun with. One that has failed is tried again, with a new budget of failures; one that has finished stays as it
  /// is, and fit() returns its result. Throws NotFound, StorageError, and InvalidArgument where this program does not
  /// have its function.
  ///
  /// `directory` may be the URI of what is published ("s3://bucket/folder/name"), or a published run's working
  /// directory. From a URI it continues in the working directory, if that is there and has all that is published, and
  /// else in a new one that is made from what is published. Throws InvalidArgument too when the storage cannot be used.
  static Trainer restore(const std::filesystem::path& directory, const RestoreOptions& restore = {});

  /// Runs it to its end, once. SIGINT (Ctrl-C), SIGTERM and SIGHUP (the terminal is gone), where the program has left
  /// them at their default, end it in an orderly way: workers stop at their next report, which is committed, and
  /// Interrupted is thrown. They may be sent to all processes at once. The second one, a quarter of a second later or
  /// more, ends the program.
  /// Throws InvalidArgument where the run exists already (see IfExists), is run by another process, or needs more than
  /// the machine has; TrainingFailed; EngineError when the fork server is gone; StorageError when the store cannot be
  /// written. A full disk makes everybody wait.
  Result fit();

 protected:
  /// For trainers of a library: workers form a group with this backend (run/group_backend.h) before the function runs.
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
