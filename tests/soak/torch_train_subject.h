// Training runs to interrupt: small, quick, and the same again and again, whose checkpoints one of three kinds of
// validators judges, as in examples/async_validation.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>

#include "survival/controller_process.h"

namespace cadre::survival {

// What validates: each of them counts the same rows, and so the same right answers for the same parameters.
enum class Form {
  simple,       // a function that reads the rows
  trainer,      // a training run that only evaluates
  map_batches,  // a dataset's workers
};
inline constexpr std::array kForms = {"simple", "trainer", "map_batches"};

struct TrainingSetting {
  Form form = Form::simple;
  std::int64_t workers = 2;
  std::int64_t steps = 40;
  std::int64_t checkpoint_interval = 1;
  std::int64_t num_to_keep = 1;

  std::string text() const;  // for messages
};

// In the checkpoints.
inline constexpr const char* kStateFile = "model.pt";  // the parameters
std::string file_of_rank(std::int64_t rank);

// Writes the rows that validators count, as Parquet files in a new folder.
void write_rows(const std::filesystem::path& folder);

// The controller of a run, which is continued when it is there, and begun otherwise. `temporary` is where the run's
// processes make temporary files.
ControllerProcess start_training(const std::filesystem::path& run, const TrainingSetting& setting,
                                 const std::filesystem::path& rows, const std::filesystem::path& temporary);
// For main, before anything else: never returns when this process was started to be such a controller.
void run_if_training(int argc, char** argv);

}  // namespace cadre::survival
