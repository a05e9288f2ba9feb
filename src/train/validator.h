// A validator's worker: what it is told at its start, and the entry that runs its function.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "cadre/resources.h"
#include "cadre/value.h"

namespace cadre::train {

struct ValidatorAssignment {
  std::string run_name = {};
  std::string run_directory = {};  // path
  std::string directory = {};      // path of its own
  std::string checkpoint = {};     // path
  Config config = {};
  Resources resources = {};
  std::optional<Resources> worker_resources = {};   // of workers that it may start; empty: it may not
  std::optional<std::string> visible_devices = {};  // CUDA_VISIBLE_DEVICES; empty: as it is
};

Value to_value(const ValidatorAssignment& assignment);
ValidatorAssignment to_validator_assignment(const Value& payload);

// That of this process; nullptr where it is no validator's.
const ValidatorAssignment* current_validator();

// The directory of a checkpoint's validator, inside the run's.
inline constexpr const char* kValidationsName = "validations";
std::filesystem::path directory_of_validator(const std::filesystem::path& run_directory, const std::string& checkpoint);

}  // namespace cadre::train
