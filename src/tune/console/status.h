// What a person is shown of an experiment's state: which trials, and which of their values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cadre/tune/schedulers.h"
#include "tune/experiment.h"
#include "tune/trial.h"

namespace cadre::tune::console {

// The order in which trials are shown.
inline constexpr std::array kStatusOrder = {TrialStatus::running, TrialStatus::terminated, TrialStatus::paused,
                                            TrialStatus::pending, TrialStatus::error};
// A number for each status, in that order.
using StatusCounts = std::array<std::int64_t, kStatusOrder.size()>;

// The state that is shown. The trials must outlive it.
struct ExperimentView {
  const std::vector<Trial>& trials;
  std::int64_t trials_to_come = 0;  // that are not made yet; they count as pending
  std::string resource_usage = {};
  std::string scheduler_state = {};
};
ExperimentView view_of(const Experiment& experiment);

// What the experiment is about.
struct Focus {
  std::string metric = {};  // of the TuneConfig; may be empty
  Mode mode = Mode::max;
  std::vector<std::string> mutated = {};  // paths of the parameters that the scheduler changes
};
Focus focus_of(const TuneConfig& config);

struct Overview {
  StatusCounts counts = {};
  std::optional<TrialIndex> best = {};  // by the latest results; empty as long as none has the metric
};
// Walks over all trials.
Overview overview_of(const ExperimentView& view, const Focus& focus);

// The trials of a table, in the order of their rows, and how many of each status have none.
struct Selection {
  std::vector<TrialIndex> rows = {};
  StatusCounts hidden = {};
};
// At most `maximum` trials (at least 1), each status with an equal share as long as it has so many, and the best one
// always among them.
Selection select_trials(const ExperimentView& view, const Overview& overview, std::size_t maximum);

// Paths of what the selected trials have drawn from the search space, and then of what the scheduler changes beside it.
std::vector<std::string> parameters_of(const ExperimentView& view, const Selection& selection, const Focus& focus);

// Paths of the numbers that the selected trials report: the metric of the experiment first, then the others in the
// order in which they come. Those that every result has, and parameters that are reported too, are left out.
std::vector<std::string> metrics_of(const ExperimentView& view, const Selection& selection, const Focus& focus,
                                    const std::vector<std::string>& parameters);

}  // namespace cadre::tune::console
