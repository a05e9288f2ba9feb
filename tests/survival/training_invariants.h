// Invariants of a finished training run, however often it was interrupted.
#pragma once

#include <cadre/value.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "survival/training_setting.h"

namespace cadre::survival {

// Outcome of a training run; it is the same whatever interrupts the run.
struct TrainingOutcome {
  std::vector<Metrics> history;
  std::string state;                         // parameters of the last checkpoint
  std::vector<Metrics> kept;                 // validation metrics of the kept checkpoints
  std::map<std::int64_t, Metrics> verdicts;  // validation metrics of each checkpoint, by the step of its report
  std::vector<std::string> validator_files;  // files left by validators, below the run's directory
};
TrainingOutcome outcome_of_training(const std::filesystem::path& run);

// Returns faults, a line each; empty if there are none.
std::vector<std::string> faults_of_training(const std::filesystem::path& run, const TrainingSetting& setting,
                                            const TrainingOutcome& undisturbed);

}  // namespace cadre::survival
