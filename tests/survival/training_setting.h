// Training runs to interrupt: small, quick, and the same again and again, whose checkpoints one of three kinds of
// validators judges, as in examples/async_validation. torch_training_controller.cc trains.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace cadre::survival {

// Kinds of validators: each of them counts the same rows, and so the same right answers for the same parameters.
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
std::string file_of_rank(std::int64_t rank);           // holds the step

// Holds what the controller's main gets as arguments.
struct TrainingOrder {
  std::string run;             // a directory or URI; continued when it is there, and begun otherwise
  std::filesystem::path rows;  // that validators count; written where they are not there
  TrainingSetting setting = {};
};
std::vector<std::string> to_arguments(const TrainingOrder& order);
// Throws std::runtime_error for other arguments.
TrainingOrder from_arguments(const std::vector<std::string>& arguments);

}  // namespace cadre::survival
