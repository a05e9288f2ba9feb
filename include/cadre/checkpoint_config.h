/// \file
/// Settings that Tune and Train share: objectives, retention of checkpoints, result files, handling of existing
/// directories, and publishing in a storage.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

namespace cadre {

class Stored;
class Value;

/// The direction of good values of a metric.
enum class Mode {
  min,  ///< small values are good, for example of a loss
  max,  ///< large values are good, for example of an accuracy
};

/// A metric and, optionally, the direction of its good values. Made by minimize() and maximize(); a plain name
/// converts, and the direction must then be given separately.
struct Objective {
  Objective() = default;                                      ///< makes an objective without a metric
  Objective(const char* metric) : name(metric) {}             ///< takes a name without a direction
  Objective(std::string metric) : name(std::move(metric)) {}  ///< takes a name without a direction
  Objective(std::string metric, std::optional<Mode> direction)
      : name(std::move(metric)), mode(direction) {}  ///< takes a name with its direction

  std::string name = {};                              ///< name of the metric, or its path ("eval/loss")
  std::optional<Mode> mode = {};                      ///< direction of good values; empty: not given here
  bool operator==(const Objective&) const = default;  ///< compares name and direction
};

/// Returns an objective whose small values are good: minimize("loss").
inline Objective minimize(std::string metric) { return {std::move(metric), Mode::min}; }
/// Returns an objective whose large values are good: maximize("mean_accuracy").
inline Objective maximize(std::string metric) { return {std::move(metric), Mode::max}; }

/// \cond forms for cadre/stored.h; the direction is stored beside the name
Value stored_form(const Objective& metric);
void read_stored(Objective& metric, const Stored& stored);
/// \endcond

/// Retention of a trial's checkpoints. The latest checkpoint, one that another trial may still continue from, and the
/// newest one that is known to survive a power failure are always kept; so two more than `num_to_keep`, and the
/// referenced ones, may exist for a while. A checkpoint whose result has no number under the score attribute is kept;
/// NaN is the worst score; among equal scores the newer one is better.
struct CheckpointConfig {
  std::optional<std::int64_t> num_to_keep = {};  ///< at least 1; default: all
  /// Metric to rank checkpoints by: maximize("accuracy"), or its name with checkpoint_score_order. Default: the newest
  /// are the best.
  std::optional<Objective> checkpoint_score_attribute = {};
  /// Direction of good scores. Must be set unless checkpoint_score_attribute has one or is the TuneConfig's metric.
  std::optional<Mode> checkpoint_score_order = {};
  /// Interval, in training_iterations, at which a checkpoint is requested from a training function that offers a
  /// CheckpointWriter to tune::report(), or from a trainable class. 0: only at other occasions, which are the end of
  /// the trial, a pause in which its process cannot be parked, Ctrl-C, a callback's request, and Population Based
  /// Training before other trials may continue from the trial. Default: 1 for functions, so that no result is lost in a
  /// crash; 0 for classes. A Checkpoint that a function reports is always stored. Not available in a training run
  /// (cadre/train.h).
  std::optional<std::int64_t> checkpoint_frequency = {};
  /// If true, a checkpoint of the trial's last result is requested when a result with `done`, a stop criterion or the
  /// scheduler ends the trial; for a function that returns, only if that result had `done`. Default: true if the
  /// trainable can write one on request.
  std::optional<bool> checkpoint_at_end = {};
};

/// Action of fit() if the directory already holds an experiment or a training run.
enum class IfExists {
  /// Throw InvalidArgument.
  fail,
  /// Continue it, as Tuner::restore and Trainer::restore do; one that has finished returns its results. If the options
  /// differ from the original ones, InvalidArgument lists the differences.
  restore,
  /// Make another one, "name_2", "name_3" and so on, and print its name. No two processes get the same name.
  new_name,
};

/// Result files of a trial or a training run; docs/formats.md describes them.
struct Loggers {
  bool csv = true;          ///< write progress.csv
  bool json = true;         ///< write result.json
  bool tensorboard = true;  ///< write TensorBoard's event file
  /// Write a store of MLflow's into the folder mlruns of the directory of the experiment or the training run:
  /// `MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri <directory>/mlruns` shows it.
  bool mlflow = false;
  bool operator==(const Loggers&) const = default;  ///< compares all fields
};

/// Settings for a `storage_path` that is a URI or on a network file system: all work is then done in a working
/// directory on a local disk, and published periodically. See docs/tutorials/storage.md.
struct PublishConfig {
  /// Parent folder of the working directory, on a local disk. Default: ~/cadre_results, or if that is not on a local
  /// disk /var/tmp/cadre_results_ followed by the user's number.
  std::filesystem::path local_path = {};
  /// Time from one published state to the next, in seconds, above 0: the most that is lost with the local disk.
  std::chrono::duration<double> interval = std::chrono::seconds(5);
  /// Time that fit() waits at its end for unpublished data, in seconds, 0 or more. Data that is not published by then
  /// stays in the working directory, and is published when that is restored.
  std::chrono::duration<double> patience = std::chrono::minutes(10);

  bool operator==(const PublishConfig&) const = default;  ///< compares all settings
};

}  // namespace cadre
