/// \file
/// Functions that a training function calls, in its own thread in a worker.
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

/// Reports one result: measurements by name, of any names and types. Returns when the result is committed to the
/// experiment's store and the trial may continue, which can take as long as the scheduler makes the trial wait. If the
/// trial is to stop, the call does not return: it unwinds the function with an exception that is not a std::exception,
/// so that destructors run; do not swallow it.
///
/// Keys that Cadre adds: training_iteration and time_this_iter_s (unless they are given), time_total_s, timestamp,
/// date, trial_id, pid, hostname, node_ip, time_since_restore, iterations_since_restore; in the result files also done
/// and checkpoint_dir_name. If timesteps_this_iter or episodes_this_iter is reported, timesteps_total or episodes_total
/// is added unless it is given. `done` set to true ends the trial.
///
/// Throws InvalidArgument for metrics that cannot be stored: a value over 1 MiB or with more than 53 levels of lists
/// and dictionaries, or metrics of more than 32 MiB in total; Error if called in another thread, or in a worker that is
/// no trial's, such as a rank's: train::report is for those. Then nothing was reported, and the function may continue.
/// Outside a worker it warns once and does nothing, so that a training function can be run on its own.
void report(const Metrics& metrics);

/// Reports a result with a checkpoint: a directory, which is copied or moved. When the call returns the checkpoint is
/// committed, and the trial (or another one, with Population Based Training) can continue from it. Waits while the disk
/// is full. Throws StorageError if the files cannot be copied or moved; then nothing was reported.
void report(const Metrics& metrics, const Checkpoint& checkpoint);

/// Reports a result with a checkpoint that `write` fills when one is wanted: with every result, unless
/// CheckpointConfig::checkpoint_frequency says otherwise; and regardless of that when the trial ends with this result,
/// is paused and its process cannot be parked, or is interrupted by Ctrl-C, when a callback asks for a checkpoint
/// (SHOULD_CHECKPOINT), and before Population Based Training lets other trials continue from this one. `write` is
/// called at most once, in this thread and before the call returns: either at once, before the result is sent, or
/// later, when the result is already committed. It may therefore refer to local variables, and a function needs no
/// interval of its own. A function that returns by itself should set `done` to true in its last result, or no
/// checkpoint of that result may ever be requested.
///
/// The directory is made, filled and committed, or removed if `write` throws: then nothing was reported or, if the
/// result was already committed, the result has no checkpoint. If `write` throws OutOfSpace, as save_state does on a
/// full disk, it is called again each second until there is space.
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

/// Returns the checkpoint to continue from: the one this worker was started with, or the last one it reported. Empty at
/// the very beginning, and outside a worker. Its directory exists at least until this worker reports another one.
std::optional<Checkpoint> get_checkpoint();

/// Returns an empty directory on the experiment's own file system, to be filled and passed to report(). Throws
/// StorageError if it cannot be made, and Error outside a worker.
CheckpointDirectory make_checkpoint_directory();

/// The experiment and trial that a training function runs in. Outside a worker the names are empty.
class TuneContext {
 public:
  std::string get_experiment_name() const;  ///< returns the name of the experiment's directory
  std::string get_trial_id() const;         ///< returns the trial's id, such as "00003"
  std::string get_trial_name() const;       ///< returns the trial's name, such as "train_convnet_00003"
  /// Returns the trial's directory, which exists; docs/formats.md describes the files that Cadre writes there.
  std::filesystem::path get_trial_dir() const;
  Resources get_trial_resources() const;  ///< returns the resources of the trial, as set by the Trainable
  /// Returns a seed for the function's own random numbers in the next iteration, drawn from the experiment's seed, the
  /// trial and the number of reports so far in its lineage: equal in every run of the experiment, different in every
  /// trial and after every report. A function that seeds its generators with it at the beginning of each iteration
  /// draws the same numbers after an interruption as without one, and other numbers than the trial that it continues
  /// from; checkpoints need not store the state of generators.
  std::uint64_t get_seed() const;
};
/// Returns the context of the calling function.
TuneContext get_context();

}  // namespace cadre::tune
