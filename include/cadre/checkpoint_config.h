/// \file
/// Which checkpoints are kept, and what "best" means; which result files are written; how an experiment is published
/// in a storage.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace cadre {

/// Whether small or large values of a metric are good.
enum class Mode {
  min,  ///< small ones, as of a loss
  max,  ///< large ones, as of an accuracy
};

/// Which checkpoints of a trial are kept. The latest one, and one that another trial may still continue from, are kept
/// in any case, and so is the newest one that is known to survive a loss of power; so two more than `num_to_keep`, and
/// the referenced ones, may exist for a while. A checkpoint whose result has no number under the score attribute is
/// kept; NaN is the worst score; of equal scores the newer one is better.
struct CheckpointConfig {
  std::optional<std::int64_t> num_to_keep = {};                ///< at least 1; default: all
  std::optional<std::string> checkpoint_score_attribute = {};  ///< a metric; default: the newest are the best
  Mode checkpoint_score_order = Mode::max;                     ///< which scores are good
  /// Of a trainable class: a checkpoint every so many training_iterations, 0 or more; 0: none by that. A training
  /// function reports its checkpoints itself, and may not have this one.
  std::int64_t checkpoint_frequency = 0;
  /// Of a trainable class: a checkpoint of a trial's last result, when a result, a stop criterion or the scheduler ends
  /// it. Default: yes for a class that can be saved. A training function may not have it.
  std::optional<bool> checkpoint_at_end = {};
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
