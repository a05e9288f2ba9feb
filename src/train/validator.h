// A validator's worker: its assignment, and the entry that runs its function.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "cadre/resources.h"
#include "cadre/value.h"
#include "train/checkpoint_part.h"

namespace cadre::train {

struct ValidatorAssignment {
  std::string run_name = {};
  std::string run_directory = {};  // path
  std::string directory = {};      // path of the validator's own directory
  std::string checkpoint = {};     // path
  HostFunction function = {};      // not set for a function of the program, which is the assignment's entry
  Config config = {};
  Resources resources = {};
  std::optional<Resources> worker_resources = {};   // for workers that it starts; empty: it may start none
  std::optional<std::string> visible_devices = {};  // CUDA_VISIBLE_DEVICES; empty: unchanged
};

Value to_value(const ValidatorAssignment& assignment);
ValidatorAssignment to_validator_assignment(const Value& payload);

// Returns the entry of a worker (worker/entries.h) that runs a validator.
std::string entry_of(const WantedValidation& wanted);

// Returns the assignment of this process; nullptr if it is not a validator.
const ValidatorAssignment* current_validator();

// The parent of all validators' directories, and the directory of one checkpoint's validator.
inline constexpr const char* kValidationsName = "validations";
std::filesystem::path directory_of_validator(const std::filesystem::path& run_directory, const std::string& checkpoint);

}  // namespace cadre::train
