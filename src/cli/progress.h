// Progress of an experiment, and an estimate of its remaining time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cadre/tune/result.h"

namespace cadre::cli {

struct Progress {
  std::int64_t trials = 0;  // total, including trials not yet created
  std::int64_t ended = 0;   // number of ended trials
  // Mean over all trials of the used share of training_iterations or running time, as limited by the stop criteria: 0
  // to 1. Empty without such a criterion.
  std::optional<double> done = {};
  // Estimated running time until the end, at the rate so far, but at most until time_budget is used up. Empty if the
  // experiment is not running or no estimate is possible.
  std::optional<double> seconds_left = {};
  bool may_end_earlier = false;  // other criteria may end trials, or the function may return
};
Progress progress_of(const tune::ResultGrid& grid);

// Returns "running", "paused", "finished" or "interrupted".
std::string state_name(const tune::ExperimentSummary& summary);

// Returns a text such as "37 %, 2 of 5 trials have ended; about 12 min 5 s left"; empty if the experiment has
// finished.
std::string progress_text(const Progress& progress, tune::ExperimentState state);

}  // namespace cadre::cli
