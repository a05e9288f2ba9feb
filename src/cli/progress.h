// How far an experiment is, and how long it will take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cadre/tune/result.h"

namespace cadre::cli {

struct Progress {
  std::int64_t trials = 0;  // in all, those that are not made yet included
  std::int64_t ended = 0;   // of them
  // The share of its training_iterations or running time that a trial has used, as the stop criteria limit them:
  // the mean over all trials, from 0 to 1. Empty without such a criterion.
  std::optional<double> done = {};
  // Running time of the experiment until all is done, if it goes on as it has so far, or until its time_budget is used
  // up. Empty where it does not run, and where nothing makes an estimate possible.
  std::optional<double> seconds_left = {};
  bool may_end_earlier = false;  // other criteria may end trials, or the function may return
};
Progress progress_of(const tune::ResultGrid& grid);

// "37 % of the iterations; about 12 min 5 s left"; empty where there is nothing to say.
std::string progress_text(const Progress& progress, tune::ExperimentState state);

}  // namespace cadre::cli
