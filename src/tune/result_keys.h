// The keys that Cadre adds to the results that a training function reports.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cadre/tune/result.h"
#include "cadre/value.h"
#include "loggers/result_keys.h"

namespace cadre::tune {

namespace result_key {

using namespace loggers::result_key;

// Added when a trial reports, besides the keys that training runs have too.
inline constexpr std::string_view trial_id = "trial_id";
inline constexpr std::string_view node_ip = "node_ip";
// Added in the result files; a function that reports `done` as true asks for its trial's end.
inline constexpr std::string_view should_checkpoint = SHOULD_CHECKPOINT;  // reported by trainable classes
inline constexpr std::string_view done = DONE;

// Added if the function reports the amount of this iteration, like timesteps_total.
inline constexpr std::string_view timesteps_this_iter = "timesteps_this_iter";
inline constexpr std::string_view episodes_total = "episodes_total";
inline constexpr std::string_view episodes_this_iter = "episodes_this_iter";

}  // namespace result_key

static_assert(result_key::training_iteration == TRAINING_ITERATION && result_key::time_total_s == TIME_TOTAL_S);

// Returns true if the result has exactly `true` under the key.
bool is_true(const Metrics& result, std::string_view key);

// Returns true if Cadre adds the key to results and its values only grow, so that a threshold is reached from below.
bool is_counter(std::string_view key);

// Limit of the paths that the following functions collect.
inline constexpr std::size_t kMostNumberPaths = 32;

// Returns the paths of the result's numbers except those that every result has: the metrics of the trial.
std::vector<std::string> number_paths(const Metrics& result);

// Adds the paths missing in `paths`, up to kMostNumberPaths in all.
void add_number_paths(const Metrics& result, std::vector<std::string>& paths);

}  // namespace cadre::tune
