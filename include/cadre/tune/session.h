/// \file
/// What a training function calls. Everything here belongs to the function's own thread, in a worker.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "cadre/checkpoint.h"
#include "cadre/resources.h"
#include "cadre/value.h"

namespace cadre::tune {

/// Reports one result: measurements by name, of any names and types. Returns when it is committed to the experiment's
/// store and the trial may go on, which can take as long as the scheduler lets the trial wait. When the trial is to
/// stop, the call does not return: it unwinds the function with an exception that is not a std::exception, so that
/// destructors run; do not swallow it.
///
/// Keys that Cadre adds: training_iteration and time_this_iter_s (unless they are given), time_total_s, timestamp,
/// date, trial_id, pid, hostname, node_ip, time_since_restore, iterations_since_restore; in the result files done and
/// checkpoint_dir_name. Where timesteps_this_iter or episodes_this_iter is reported, timesteps_total or episodes_total,
/// unless it is given. `done` as true ends the trial.
///
/// Throws InvalidArgument for what cannot be stored: a value over 1 MiB or with more than 53 levels of lists and
/// dictionaries, or metrics of more than 32 MiB together; Error when called in another thread. Then nothing was
/// reported, and the function may go on. Outside a worker it warns once and does nothing, so that a training function
/// can be run by itself.
void report(const Metrics& metrics);

/// The same with a checkpoint: a directory, which is copied or moved. When the call returns it is committed, and the
/// trial (or another one, with Population Based Training) can continue from it. Waits while the disk is full. Throws
/// StorageError when its files cannot be copied or moved; then nothing was reported.
void report(const Metrics& metrics, const Checkpoint& checkpoint);

/// The same with a checkpoint that `write` fills when one is wanted: with every result, unless
/// CheckpointConfig::checkpoint_frequency says otherwise; and whatever that says, when the trial ends with this result,
/// is paused and its process cannot stay, is interrupted by Ctrl-C, when a callback asks for it (SHOULD_CHECKPOINT),
/// and before Population Based Training lets others continue from the trial. `write` is called at most once in this
/// call and never after it, in this thread: at once, before the result is sent, or later, when the result is committed
/// already. So it may refer to local variables, and a function needs no interval of its own. Whoever returns by itself
/// says so with `done` as true in its last result, or the checkpoint of that may never be asked for.
///
/// The directory is made, filled and committed, or removed when `write` throws: then nothing was reported or, where the
/// result was committed already, the result is there without a checkpoint. When it throws OutOfSpace, as save_state
/// does on a full disk, it is called again each second until there is space.
void report(const Metrics& metrics, const CheckpointWriter& write);

/// \cond mistakes, which do not compile
template <class T>
  requires std::convertible_to<const T&, std::filesystem::path>
CADRE_MISTAKE("a directory becomes a checkpoint: write Checkpoint::from_directory(path)")
void report(const Metrics& metrics, const T& path);
template <class T>
  requires(cadre::detail::FunctionLike<T> && !std::convertible_to<const T&, CheckpointWriter>)
CADRE_MISTAKE("a checkpoint's writer takes a directory: write [&](const std::filesystem::path& directory) { ... }")
void report(const Metrics& metrics, const T& write);
/// \endcond

/// The checkpoint to continue from: the one this worker was started with, or the last one it reported. Empty at the
/// very beginning, and outside a worker. Its directory is there at least until this worker
/// reports another one.
std::optional<Checkpoint> get_checkpoint();

/// An empty directory on the experiment's own file system, to be filled and given to report(). Throws StorageError, and
/// Error outside a worker.
CheckpointDirectory make_checkpoint_directory();

/// Where a training function runs. Outside a worker the names are empty.
class TuneContext {
 public:
  std::string get_experiment_name() const;  ///< the name of the experiment's directory
  std::string get_trial_id() const;         ///< "00003"
  std::string get_trial_name() const;       ///< "train_convnet_00003"
  /// The trial's directory, which exists; docs/formats.md says what Cadre writes there.
  std::filesystem::path get_trial_dir() const;
  Resources get_trial_resources() const;  ///< what each of its trials needs, as the Trainable says
  /// A seed for the function's own random numbers in the iteration that comes next, drawn from the experiment's seed,
  /// the trial and the number of reports so far in its lineage: the same in every run of the experiment, another one in
  /// every trial and after every report. A function that seeds its generators with it at the beginning of each
  /// iteration draws the same numbers after an interruption as without one, and others than the trial that it continues
  /// from; no checkpoint has to have their state.
  std::uint64_t get_seed() const;
};
/// The context of the function that calls.
TuneContext get_context();

}  // namespace cadre::tune
