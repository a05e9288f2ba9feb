// Shared code of tests of training runs: functions for ranks, and options.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "cadre/train.h"

namespace cadre::system_tests {

inline std::int64_t rank() { return train::get_context().get_world_rank(); }

// Appends a line about a rank's progress to a file of the run.
inline void bear_witness(const std::string& name, const std::string& text) {
  std::ofstream(train::get_context().get_storage() / name, std::ios::app) << text << std::endl;
}

inline void write_step(const std::filesystem::path& directory, std::int64_t step) {
  std::ofstream(directory / "step") << step;
}

inline std::int64_t read_step(const Checkpoint& checkpoint) {
  std::int64_t step = 0;
  std::ifstream(checkpoint.path() / "step") >> step;
  return step;
}

inline train::TrainerOptions options_in(const std::filesystem::path& storage, std::int64_t workers,
                                        Config config = {}) {
  return {.train_loop_config = std::move(config),
          .scaling_config = {.num_workers = workers, .resources_per_worker = Resources{.cpus = 0.01}},
          .run_config = {.name = "run", .storage_path = storage, .verbose = 0}};
}

inline std::vector<std::int64_t> steps_of(const train::Result& result) {
  std::vector<std::int64_t> steps;
  for (const Metrics& metrics : result.metrics_history) steps.push_back(metrics.get<std::int64_t>("step"));
  return steps;
}

}  // namespace cadre::system_tests
