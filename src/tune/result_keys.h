// What every result has: the keys that Cadre adds to what a training function reports.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cadre/tune/result.h"
#include "cadre/value.h"
#include "run/result_keys.h"

namespace cadre::tune {

namespace result_key {

using namespace run::result_key;

// Added when it is reported, beside those that training runs have too.
inline constexpr std::string_view trial_id = "trial_id";
inline constexpr std::string_view node_ip = "node_ip";
// Added in the result files; a function that reports `done` as true asks for its trial's end.
inline constexpr std::string_view should_checkpoint = SHOULD_CHECKPOINT;  // of a trainable class
inline constexpr std::string_view done = DONE;

// Added where their part of this iteration is reported, as timesteps_total is.
inline constexpr std::string_view timesteps_this_iter = "timesteps_this_iter";
inline constexpr std::string_view episodes_total = "episodes_total";
inline constexpr std::string_view episodes_this_iter = "episodes_this_iter";

}  // namespace result_key

static_assert(result_key::training_iteration == TRAINING_ITERATION && result_key::time_total_s == TIME_TOTAL_S);

// Whether a result has true, and nothing else, under a key.
bool is_true(const Metrics& result, std::string_view key);

// Returns whether Cadre adds the key to results and its values only grow, so that a threshold is reached from below.
bool is_counter(std::string_view key);

// The most paths that the following look for.
inline constexpr std::size_t kMostNumberPaths = 32;

// Paths of the numbers of a result without those that every result has: what says how well a trial does.
std::vector<std::string> number_paths(const Metrics& result);

// Adds those that `paths` does not have, as long as it has fewer than the most.
void add_number_paths(const Metrics& result, std::vector<std::string>& paths);

}  // namespace cadre::tune
