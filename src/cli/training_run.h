// Training runs in the commands for experiments.
#pragma once

#include <filesystem>
#include <string>

#include "cadre/train.h"

namespace cadre::cli {

struct TrainingRun {
  std::string name = {};        // of its directory
  std::string state = {};       // "running", "finished", "failed" or "interrupted"
  std::string status = {};      // state of the controller: "SCHEDULING", "RESTARTING", ...
  std::string controller = {};  // the process that runs it; empty: none
  double last_event = 0;        // seconds since 1970
  train::Result result = {};
};

// Returns true if a directory with a store contains a training run. Throws if the store cannot be read.
bool is_training_run(const std::filesystem::path& directory);
TrainingRun read_training_run(const std::filesystem::path& directory);

Dict document_of(const TrainingRun& run);
// Prints a run for `cadre show`.
void show(const TrainingRun& run, bool json);

}  // namespace cadre::cli
