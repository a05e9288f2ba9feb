// The trials of a search as points with losses, for searchers that learn from the last results of trials.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "cadre/faults.h"
#include "cadre/tune/constraint.h"
#include "cadre/tune/searcher.h"

namespace cadre::tune {

// An ended trial with a result.
struct Observation {
  TrialIndex trial = 0;
  Point point = {};                 // settled
  std::vector<double> losses = {};  // one for each objective: small values are good; infinite for NaN
  double violation = 0;             // sum of the amounts by which it breaks constraints; 0: it keeps them all
  bool stopped = false;             // true: a scheduler ended it early, so its losses are not final
  std::int64_t iteration = 0;       // training_iteration of its last result; 0: it has none

  double loss() const { return losses.front(); }
};

// Add faults of options of those names: an objective without a direction, a limit that is not finite.
void check_objectives(const std::vector<Objective>& metrics, Faults& faults);
void check_constraints(const std::vector<Constraint>& constraints, Faults& faults);

class Observations {
 public:
  // `objectives` replace the setting's metric if there are any; all must have a direction. The space of the setting
  // must be one of Parameters.
  Observations(const SearcherSetting& setting, std::vector<Objective> objectives = {},
               std::vector<Constraint> constraints = {});

  // Handle what a Searcher is told. A trial whose config is not of the space, and one that ended with an error or
  // without a number for each objective, is left out.
  void on_trial_add(TrialIndex trial, const Config& config);
  void on_trial_end(TrialIndex trial, TrialStatus status, const Metrics& last_result);

  const Parameters& parameters() const { return parameters_; }
  std::size_t num_objectives() const { return objectives_.size(); }
  // Return the trials that have not ended, and those that have, both ascending by trial.
  const std::map<TrialIndex, Point>& open() const { return open_; }
  const std::vector<Observation>& ended() const { return ended_; }

 private:
  Parameters parameters_;
  std::vector<Objective> objectives_;
  std::vector<Constraint> constraints_;
  std::map<TrialIndex, Point> open_ = {};
  std::vector<Observation> ended_ = {};
};

}  // namespace cadre::tune
