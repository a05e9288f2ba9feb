// Invariants of a training run that has come to its end, however often it was interrupted.
#pragma once

#include <cadre/value.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "survival/training_setting.h"

namespace cadre::survival {

// How a run came out: the same whatever happened on the way.
struct TrainingOutcome {
  std::vector<Metrics> history;
  std::string state;                         // the last checkpoint's
  std::vector<Metrics> kept;                 // what validators say of the kept checkpoints
  std::map<std::int64_t, Metrics> verdicts;  // what they say of each checkpoint, by the step of its report
  std::vector<std::string> validator_files;  // what is left of them, below the run's directory
};
TrainingOutcome outcome_of_training(const std::filesystem::path& run);

// Each fault in a line; none where all is well.
std::vector<std::string> faults_of_training(const std::filesystem::path& run, const TrainingSetting& setting,
                                            const TrainingOutcome& undisturbed);

}  // namespace cadre::survival
