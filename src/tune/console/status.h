// Selects the trials and values of an experiment's state to show.
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

// The order of trials in tables.
inline constexpr std::array kStatusOrder = {TrialStatus::running, TrialStatus::terminated, TrialStatus::stopped,
                                            TrialStatus::paused,  TrialStatus::pending,    TrialStatus::error};
// A number for each status, in that order.
using StatusCounts = std::array<std::int64_t, kStatusOrder.size()>;

// The state to show. The trials must outlive it.
struct ExperimentView {
  const std::vector<Trial>& trials;
  std::int64_t trials_to_come = 0;  // not made yet; they count as pending
  std::string resource_usage = {};
  std::string scheduler_state = {};
  std::string searcher_state = {};  // may be empty
};
ExperimentView view_of(const Experiment& experiment);

// The metric and the parameters of most interest.
struct Focus {
  std::string metric = {};  // of the TuneConfig; may be empty
  Mode mode = Mode::max;
  std::vector<std::string> mutated = {};  // paths of the parameters that the scheduler changes
};
Focus focus_of(const TuneConfig& config);

struct Overview {
  StatusCounts counts = {};
  std::optional<TrialIndex> best = {};  // by the latest results; empty: no trial has the metric
};
// Visits all trials.
Overview overview_of(const ExperimentView& view, const Focus& focus);

// The trials of a table, in the order of their rows, and the number of trials of each status without a row.
struct Selection {
  std::vector<TrialIndex> rows = {};
  StatusCounts hidden = {};
};
// Selects at most `maximum` trials (at least 1): equal shares of each status as far as there are so many, and always
// the best trial.
Selection select_trials(const ExperimentView& view, const Overview& overview, std::size_t maximum);
// Selects the `maximum` best trials by the metric of their latest results, best first. Trials without a finite number
// follow in the order of kStatusOrder. Without a metric does the same as select_trials.
Selection rank_trials(const ExperimentView& view, const Overview& overview, const Focus& focus, std::size_t maximum);

// Returns the paths of the values that the selected trials drew from the search space, then those that only the
// scheduler changes.
std::vector<std::string> parameters_of(const ExperimentView& view, const Selection& selection, const Focus& focus);

// Returns the paths of the numbers that the selected trials report: the experiment's metric first, then the others in
// the order of their appearance. Omits the keys that every result has, and parameters that are reported too.
std::vector<std::string> metrics_of(const ExperimentView& view, const Selection& selection, const Focus& focus,
                                    const std::vector<std::string>& parameters);

}  // namespace cadre::tune::console
