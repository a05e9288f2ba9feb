/// \file
/// Settings that Tune and Train share: objectives, retention of checkpoints, result files, a directory that exists
/// already, and publishing in a storage.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

namespace cadre {

/// Whether small or large values of a metric are good.
enum class Mode {
  min,  ///< small ones, as of a loss
  max,  ///< large ones, as of an accuracy
};

/// A metric and, where it is said with it, which of its values are good. Made by minimize() and maximize(); a plain
/// name converts, and then the direction has to be said beside it.
struct Objective {
  Objective() = default;                                      ///< no metric
  Objective(const char* metric) : name(metric) {}             ///< a name, no direction
  Objective(std::string metric) : name(std::move(metric)) {}  ///< a name, no direction
  Objective(std::string metric, std::optional<Mode> direction)
      : name(std::move(metric)), mode(direction) {}  ///< a name with its direction

  std::string name = {};                              ///< of the metric, or its path ("eval/loss")
  std::optional<Mode> mode = {};                      ///< which values are good; empty: not said here
  bool operator==(const Objective&) const = default;  ///< the same name and direction
};

/// Small values of the metric are good: minimize("loss").
inline Objective minimize(std::string metric) { return {std::move(metric), Mode::min}; }
/// Large values of the metric are good: maximize("mean_accuracy").
inline Objective maximize(std::string metric) { return {std::move(metric), Mode::max}; }

/// Which checkpoints of a trial are kept. The latest one, and one that another trial may still continue from, are kept
/// in any case, and so is the newest one that is known to survive a loss of power; so two more than `num_to_keep`, and
/// the referenced ones, may exist for a while. A checkpoint whose result has no number under the score attribute is
/// kept; NaN is the worst score; of equal scores the newer one is better.
struct CheckpointConfig {
  std::optional<std::int64_t> num_to_keep = {};  ///< at least 1; default: all
  /// A metric: maximize("accuracy"), or its name with checkpoint_score_order. Default: the newest are the best.
  std::optional<Objective> checkpoint_score_attribute = {};
  /// Says which scores are good. Must be set unless checkpoint_score_attribute says it, or is the TuneConfig's metric.
  std::optional<Mode> checkpoint_score_order = {};
  /// A checkpoint every so many training_iterations of what can be asked for one: a training function that offers a
  /// CheckpointWriter to tune::report(), or a trainable class. 0: only where something else wants one, which are the
  /// end of the trial, a pause in which its process cannot stay, Ctrl-C, a callback, and Population Based Training
  /// before others may continue from the trial. Default: 1 for functions, so that nothing is lost whatever dies; 0 for
  /// classes. What a function reports as a Checkpoint is always taken. A training run (cadre/train.h) has none of this.
  std::optional<std::int64_t> checkpoint_frequency = {};
  /// A checkpoint of a trial's last result, when a result with `done`, a stop criterion or the scheduler ends it; of a
  /// function that returns, only where that result had `done`. Default: yes where the trial can be asked for one.
  std::optional<bool> checkpoint_at_end = {};
};

/// Says what fit() does where the directory of its name holds an experiment, or a training run, already.
enum class IfExists {
  /// Throws InvalidArgument.
  fail,
  /// Continues it, as Tuner::restore and Trainer::restore do; one that has finished returns its results. With other
  /// options than it was begun with, InvalidArgument lists where they differ.
  restore,
  /// Makes another one, "name_2", "name_3" and so on, and says so. No two processes get the same name.
  new_name,
};

/// Which files of its results a trial or a training run gets; docs/formats.md describes them.
struct Loggers {
  bool csv = true;                                  ///< progress.csv
  bool json = true;                                 ///< result.json
  bool tensorboard = true;                          ///< TensorBoard's event file
  bool operator==(const Loggers&) const = default;  ///< the same files
};

/// What counts where `storage_path` is a URI or lies on a network file system: everything is then done in a working
/// directory on a local disk, and published by and by. docs/tutorials/storage.md is about it.
struct PublishConfig {
  /// Where the working directory is made, on a local disk. Default: ~/cadre_results, or where that is no local disk
  /// /var/tmp/cadre_results_ with the number of the user behind it.
  std::filesystem::path local_path = {};
  /// From one published state to the next, in seconds, above 0: what the loss of the local disk may cost.
  std::chrono::duration<double> interval = std::chrono::seconds(5);
  /// How long fit() waits at its end for what is not published yet, in seconds, 0 or more. What is not published then
  /// stays in the working directory, and is published when that is restored.
  std::chrono::duration<double> patience = std::chrono::minutes(10);

  bool operator==(const PublishConfig&) const = default;  ///< the same settings
};

}  // namespace cadre
