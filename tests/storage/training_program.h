// A published training run in a process of its own: this program, executed again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace cadre::storage_tests {

inline constexpr std::int64_t kTrainingSteps = 150;      // reports of the run
inline constexpr std::int64_t kValidationInterval = 10;  // steps between two checkpoints that are validated

// Arguments for survival::ControllerProcess: begins the run at this path or URI, or continues it. With a `witness` it
// reports until it is killed, each time until that is published, and writes the last report's step into that file.
std::vector<std::string> training_arguments(const std::string& run, const std::filesystem::path& witness = {});

// Call first in main: if this process was started to train, trains and never returns.
void run_if_training(int argc, char** argv);

}  // namespace cadre::storage_tests
