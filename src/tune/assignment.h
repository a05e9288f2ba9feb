// What a trial's worker is told at its start: the typed form of channel::Assignment's payload.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cadre/resources.h"
#include "cadre/value.h"

namespace cadre::tune {

struct TrialAssignment {
  std::string experiment_name = {};
  std::uint32_t trial = 0;
  std::string trial_id = {};
  std::string trial_name = {};
  std::string trial_directory = {};  // path
  std::int64_t attempt = 0;
  Config config = {};
  Config parameters = {};           // of the trainable, the same for all trials
  std::string metric = {};          // of the TuneConfig; may be empty
  std::string checkpoint = {};      // path of the directory to continue from; empty: from the beginning
  Metrics checkpoint_metrics = {};  // the result that it was reported with
  std::int64_t step = 0;            // to continue from
  std::int64_t seed = 0;            // of the experiment; all 64 bits count
  Resources resources = {};
  std::optional<Resources> worker_resources = {};  // part of them, for workers of its own; empty: it may have none
  std::int64_t checkpoint_frequency = 0;  // iterations from one checkpoint to the next; 0: only what is asked for
  bool checkpoint_at_end = false;         // also one with a result that says done
  bool runs_in_directory = false;         // its working directory is that of the trial
  std::optional<std::string> visible_devices = {};  // CUDA_VISIBLE_DEVICES; empty: as it is
};

Value to_value(const TrialAssignment& assignment);
TrialAssignment to_assignment(const Value& payload);

}  // namespace cadre::tune
