// Training runs among experiments: what the commands say of them.
#pragma once

#include <filesystem>
#include <string>

#include "cadre/train.h"

namespace cadre::cli {

struct TrainingRun {
  std::string name = {};        // of its directory
  std::string state = {};       // "running", "finished", "failed" or "interrupted"
  std::string status = {};      // as its controller has it: "SCHEDULING", "RESTARTING", ...
  std::string controller = {};  // who runs it; empty: nobody
  double last_event = 0;        // seconds since 1970
  train::Result result = {};
};

// Whether a directory that has a store holds a training run. Throws what a store that cannot be read throws.
bool is_training_run(const std::filesystem::path& directory);
TrainingRun read_training_run(const std::filesystem::path& directory);

Dict document_of(const TrainingRun& run);
// `cadre show` of a run.
void show(const TrainingRun& run, bool json);

}  // namespace cadre::cli
