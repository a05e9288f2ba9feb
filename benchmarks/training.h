// Training runs in a process of their own, and their results.
#pragma once

#include <filesystem>
#include <string>

#include "cadre/train.h"
#include "process.h"

namespace cadre::bench {

struct TrainRun {
  double wall_s = 0;   // duration of fit()
  double began_s = 0;  // now_seconds() when fit() was called
  Usage usage;
  train::Result result;
};

// Runs a training run on `cpus` CPUs. Sets name, storage path and silence in the options.
TrainRun run_training(const std::filesystem::path& storage_path, const std::string& name, double cpus, train::Loop loop,
                      train::TrainerOptions options);

}  // namespace cadre::bench
