// Training runs in a process of their own, and what they leave.
#pragma once

#include <filesystem>
#include <string>

#include "cadre/train.h"
#include "process.h"

namespace cadre::bench {

struct TrainRun {
  double wall_s = 0;   // of fit()
  double began_s = 0;  // now_seconds() when fit() was called
  Usage usage;
  train::Result result;
};

// `cpus` is what the machine offers. Name, storage path and silence are added to the options.
TrainRun run_training(const std::filesystem::path& storage_path, const std::string& name, double cpus, train::Loop loop,
                      train::TrainerOptions options);

}  // namespace cadre::bench
