/// \file
/// How an experiment or a training run is published in a storage that is no local disk.
#pragma once

#include <chrono>
#include <filesystem>

namespace cadre {

/// What counts where `storage_path` is a URI or lies on a network file system: everything is then done in a working
/// directory on a local disk, and published by and by. docs/tutorials/storage.md is about it.
struct PublishConfig {
  /// Where the working directory is made, on a local disk. Default: ~/cadre_results, or /var/tmp/cadre_results_<user
  /// id> where that is no local disk.
  std::filesystem::path local_path = {};
  /// From one published state to the next, in seconds, above 0: what the loss of the local disk may cost.
  std::chrono::duration<double> interval = std::chrono::seconds(5);
  /// How long fit() waits at its end for what is not published yet, in seconds, 0 or more. What is not published then
  /// stays in the working directory, and is published when that is restored.
  std::chrono::duration<double> patience = std::chrono::minutes(10);

  bool operator==(const PublishConfig&) const = default;  ///< the same settings
};

}  // namespace cadre
