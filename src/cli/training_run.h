// Training runs in the commands for experiments.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cadre/train.h"
#include "cadre/tune/result.h"

namespace cadre::cli {

struct TrainingRun {
  std::string name = {};        // of its directory
  std::string state = {};       // "running", "finished", "failed" or "interrupted"
  std::string status = {};      // state of the controller: "SCHEDULING", "RESTARTING", ...
  std::string controller = {};  // the process that runs it; empty: none
  double last_event = 0;        // seconds since 1970
  train::Result result = {};
  std::vector<Dict> rows = {};  // of the reports, as in result.json
  std::string metric = {};      // by which its checkpoints are ranked; empty: the newest are the best
  std::optional<Mode> mode = {};
};

// Returns true if a directory with a store contains a training run. Throws if the store cannot be read.
bool is_training_run(const std::filesystem::path& directory);
TrainingRun read_training_run(const std::filesystem::path& directory);
// Returns it as an experiment of one trial, whose results are the rows of its reports.
tune::ResultGrid as_experiment(const TrainingRun& run);
// Returns the name of a metric in the rows: "validation/accuracy" for "accuracy" if only validations have found one.
std::string name_in_rows(const TrainingRun& run, const std::string& metric);

Dict document_of(const TrainingRun& run);
// Prints a run for `cadre show`.
void show(const TrainingRun& run, bool json);

}  // namespace cadre::cli
