// A training run that is published, in a process of its own: this program, executed again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cadre::storage_tests {

inline constexpr std::int64_t kTrainingSteps = 150;      // that it reports
inline constexpr std::int64_t kValidationInterval = 10;  // steps between two checkpoints that are validated

// Arguments for survival::ControllerProcess: begins the run at this path or URI, or continues it.
std::vector<std::string> training_arguments(const std::string& run);

// For main, before anything else: trains and never returns when this process was started for that.
void run_if_training(int argc, char** argv);

}  // namespace cadre::storage_tests
