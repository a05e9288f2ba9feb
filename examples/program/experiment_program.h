// Shared by the examples: the flags of an experiment, and its exit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include <cadre/train.h>

#include "program/command_line.h"

namespace examples {

struct ExperimentFlags {
  std::int64_t num_samples = 4;
  std::int64_t max_iterations = 50;
  std::uint64_t seed = 0;
  std::string data_dir = "data/mnist";
  std::string storage_path = "results";
  std::string name = {};  // each example sets its own
  bool restore = false;
  bool smoke_test = false;

  std::filesystem::path experiment_path() const { return std::filesystem::path(storage_path) / name; }
};

// Adds --num-samples, --max-iterations, --seed, --data-dir, --storage-path, --name, --restore and --smoke-test to a
// program's command line, with the values of `flags` as defaults. `flags` is filled when the command line is parsed,
// and must live until then.
void add_flags(CommandLine& command_line, ExperimentFlags& flags);

// Flags of a program that trains one network on Fashion-MNIST.
struct TrainingFlags {
  std::int64_t num_workers = 2;
  double gpus_per_worker = 0;  // 0: trains on CPUs
  std::int64_t epochs = 10;
  std::string model = "resnet18";  // or "convnet"
  std::int64_t max_images = 0;
  std::uint64_t seed = 0;
  std::string data_dir = "/usr/share/datasets/fashion-mnist";
  std::string storage_path = "results";
  std::string name = {};  // each example sets its own
  bool restore = false;
  bool smoke_test = false;

  std::filesystem::path run_path() const { return std::filesystem::path(storage_path) / name; }
  cadre::train::ScalingConfig scaling_config() const;
};

// The same for these: --num-workers, --gpus-per-worker, --epochs, --model, --max-images, --seed, --data-dir,
// --storage-path, --name,
// --restore and --smoke-test.
void add_flags(CommandLine& command_line, TrainingFlags& flags);

// Calls `run` and returns its result, for `main`. When Ctrl-C interrupts the experiment, adds the command that
// continues it to the error message that cadre::init prints at the program's end. `program` is the program's name as
// the user typed it.
int run_program(const std::string& program, const ExperimentFlags& flags, const std::function<int()>& run);

}  // namespace examples
