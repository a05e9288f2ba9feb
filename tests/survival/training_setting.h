// Training runs to interrupt: small, quick and reproducible. One of three kinds of validators judges their checkpoints,
// as in examples/async_validation. torch_training_controller.cc trains.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace cadre::survival {

// Kinds of validators. All count the same rows, and so get the same result for the same parameters.
enum class Form {
  simple,       // a function that reads the rows
  trainer,      // a training run that only evaluates
  map_batches,  // the workers of a dataset
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

// Files of a checkpoint.
inline constexpr const char* kStateFile = "model.pt";  // the parameters
std::string file_of_rank(std::int64_t rank);           // holds the step

// Arguments of the controller's main.
struct TrainingOrder {
  std::string run;             // a directory or URI; continued if it exists, begun otherwise
  std::filesystem::path rows;  // rows for the validators; written if they do not exist
  TrainingSetting setting = {};
};
std::vector<std::string> to_arguments(const TrainingOrder& order);
// Throws std::runtime_error for invalid arguments.
TrainingOrder from_arguments(const std::vector<std::string>& arguments);

}  // namespace cadre::survival
