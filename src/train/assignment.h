// A rank's assignment: the typed form of channel::Assignment's payload, which its worker receives when it starts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "cadre/function.h"
#include "cadre/resources.h"
#include "cadre/value.h"
#include "engine/engine.h"
#include "train/events.h"
#include "worker/group_backend.h"

namespace cadre::train {

struct RankAssignment {
  std::string run_name = {};
  std::string run_directory = {};  // path
  worker::GroupPlace place = {};
  std::int64_t attempt = 0;
  std::int64_t generation = 1;  // for the names of reported directories (publish::checkpoint_place)
  HostFunction function = {};   // not set for a function of the program, which is the assignment's entry
  Config config = {};
  std::string checkpoint = {};  // path of the directory to continue from; empty: start from the beginning
  std::int64_t step = 0;        // step to continue from
  Resources resources = {};
  std::int64_t collective_timeout_ms = 0;
  std::string backend = {};  // empty: none
  Config backend_options = {};
  std::optional<std::string> visible_devices = {};  // CUDA_VISIBLE_DEVICES; empty: unchanged
  bool has_validator = false;                       // true if the run has a validation function
  Config datasets = {};
  bool sends_metrics = false;      // true: also of other ranks than 0, for callbacks
  bool runs_in_directory = false;  // true if its working directory is the rank's directory
  bool in_trial = false;           // true if the run is a trial's
  bool is_on_node = false;         // true: it may see directories that the controller does not see
  // The node whose own directory run_directory is, because it does not see the run's; empty: it is not.
  std::optional<engine::NodeId> node = {};
};

Value to_value(const RankAssignment& assignment);
RankAssignment to_assignment(const Value& payload);

// Returns the name of a rank's directory, inside the run's.
std::string directory_of_rank(std::int64_t rank);

// Returns the rank's place among the ranks of its node, and its node's among the nodes of the group. `nodes` are those
// of the engine, with their addresses.
worker::GroupPlace place_of(const LaunchGroup& group, Rank rank, std::span<const engine::Node> nodes);

}  // namespace cadre::train
