// The typed form of channel::Assignment's payload for the worker of a trial.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cadre/function.h"
#include "cadre/resources.h"
#include "cadre/tune/program.h"
#include "cadre/value.h"

namespace cadre::tune {

struct TrialAssignment {
  std::string experiment_name = {};
  std::uint32_t trial = 0;
  std::string trial_id = {};
  std::string trial_name = {};
  std::string trial_directory = {};  // path
  std::int64_t attempt = 0;
  std::int64_t generation = 1;  // for the names of reported directories (publish::checkpoint_place)
  HostFunction function = {};   // not set for a function of the program, which is the assignment's entry
  Program program = {};         // not set for a function
  Config config = {};
  Config parameters = {};           // of the trainable, the same for all trials
  std::string metric = {};          // of the TuneConfig; may be empty
  std::string checkpoint = {};      // path of the directory to continue from; empty: from the beginning
  Metrics checkpoint_metrics = {};  // reported with that checkpoint
  std::int64_t step = 0;            // training continues after this step
  std::int64_t seed = 0;            // of the experiment; all 64 bits count
  Resources resources = {};
  std::optional<Resources> worker_resources = {};   // the part for its own workers here; empty: it may have none
  std::vector<std::string> worker_nodes = {};       // where they may run, if the trial has several nodes: their names
  std::string node_ip = "127.0.0.1";                // by which other nodes reach its own
  std::int64_t checkpoint_frequency = 0;            // iterations between checkpoints; 0: only on request
  bool checkpoint_at_end = false;                   // true: also checkpoint a result with `done`
  bool runs_in_directory = false;                   // true: the trial's directory is the working directory
  std::optional<std::string> visible_devices = {};  // CUDA_VISIBLE_DEVICES; empty: left unchanged
};

// Tells a worker that its trial has other resources from now on.
struct ChangedResources {
  Resources resources = {};
  double own_cpus = 1;  // the part for itself
};

Value to_value(const TrialAssignment& assignment);
TrialAssignment to_assignment(const Value& payload);

}  // namespace cadre::tune
