// What a rank's worker is told at its start: the typed form of channel::Assignment's payload.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cadre/resources.h"
#include "cadre/value.h"
#include "run/group_backend.h"

namespace cadre::train {

struct RankAssignment {
  std::string run_name = {};
  std::string run_directory = {};  // path
  run::GroupPlace place = {};
  std::int64_t attempt = 0;
  Config config = {};
  std::string checkpoint = {};  // path of the directory to continue from; empty: from the beginning
  std::int64_t step = 0;        // to continue from
  Resources resources = {};
  std::int64_t collective_timeout_ms = 0;
  std::string backend = {};  // empty: none
  Config backend_options = {};
  std::optional<std::string> visible_devices = {};  // CUDA_VISIBLE_DEVICES; empty: as it is
  bool has_validator = false;                       // the run has a function for validations
  Config datasets = {};
  bool runs_in_directory = false;  // its working directory is that of the rank
};

Value to_value(const RankAssignment& assignment);
RankAssignment to_assignment(const Value& payload);

// The name of a rank's directory, inside the run's.
std::string directory_of_rank(std::int64_t rank);

}  // namespace cadre::train
