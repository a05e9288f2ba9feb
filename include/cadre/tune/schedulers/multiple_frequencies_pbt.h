/// \file
/// Population Based Training of sub-populations that evolve at different frequencies.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cadre/tune/scheduler.h"
#include "cadre/tune/schedulers/population_based_training.h"

namespace cadre::tune {

/// Multiple-Frequencies Population-Based Training (Doulazmi, Lehuger, Toromanoff et al., 2025,
/// https://arxiv.org/abs/2506.03225), by the rules of its authors' program.
///
/// Population Based Training prefers what pays off within an interval, such as a learning rate that falls too early.
/// Here trials belong to sub-populations, of which each evolves at its own multiple of the interval, so that the slow
/// ones judge by the long run. Trial i belongs to sub-population i modulo their number; there should be 8 trials in
/// each, and must be 4.
///
/// Every `perturbation_interval` of `time_attr`, a trial's score is noted and it is saved, as under
/// PopulationBasedTraining. At every n-th of these intervals, n being its sub-population's factor, it is compared with
/// the others of its sub-population, from the best to the worst: `quantile_fraction` of them are winners, as many from
/// the worst on are losers, and as many before those are open to migration.
/// * The k-th loser continues from the checkpoint of the k-th winner, with an explored copy of its config.
/// * Trials that are open to migration continue, from the best on, from the checkpoint of the best winner of all other
///   sub-populations that has not been taken yet, if its score is better. A migrant of a slower sub-population brings
///   its config. One of a faster sub-population does not, because that may be greedy: the trial takes the config of the
///   best of its own sub-population. Neither is explored.
///
/// With `synch`, sub-populations evolve in rounds, as in the paper; without, trials are compared one by one with the
/// last scores of the others.
struct MultipleFrequenciesPBT {
  std::string time_attr = {};        ///< must be set: "training_iteration", "time_total_s", or a metric that only grows
  Objective metric = {};             ///< default: the TuneConfig's; if set, it must be the same
  std::optional<Mode> mode = {};     ///< direction of good scores; default: from `metric` or the TuneConfig
  double perturbation_interval = 0;  ///< of the fastest sub-population, in units of time_attr; must be set, above 0
  double burn_in_period = 0;         ///< no comparison before this time_attr; 0 or more
  /// The interval of each sub-population, in perturbation intervals: at least 2 of them, growing from 1 on. The
  /// default, which is the paper's, needs trainings of some hundred intervals.
  std::vector<std::int64_t> interval_factors = {1, 10, 25, 50};
  Mutations hyperparam_mutations = {};     ///< as in PopulationBasedTraining
  ExploreFunction custom_explore_fn = {};  ///< called after the mutations
  Bounds bounds = Bounds::clip;            ///< treatment of an explored number that has left its domain
  /// Size of the winners, of the losers and of those open to migration, each: this fraction of the sub-population, from
  /// 0 to a third, rounded down, but at least 1 unless it is 0.
  double quantile_fraction = 0.25;
  double resample_probability = 0.25;                           ///< as in PopulationBasedTraining, 0 to 1
  std::pair<double, double> perturbation_factors = {1.2, 0.8};  ///< a number is multiplied by one of them; above 0
  bool log_config = true;                                       ///< writes pbt_global.txt and pbt_policy_<trial id>.txt
  bool require_attrs = true;  ///< a result without time_attr or metric fails its trial; otherwise it is ignored
  bool synch = false;         ///< all live trials wait for each other at every interval
  double synch_deadline = 0;  ///< with synch: as PopulationBasedTraining::synch_deadline

  std::unique_ptr<Scheduler> make(const SchedulerSetting& setting) const;       ///< returns the scheduler
  void check(const TunerOptions& options, Faults& faults) const;                ///< finds what is wrong
  void complete(const TunerOptions& options, std::vector<std::string>& notes);  ///< puts bounds in order
  Scheduler::Traits traits() const;                                             ///< it exploits
};

namespace detail {
extern template class HeldOptionsOf<Scheduler, SchedulerSetting, MultipleFrequenciesPBT>;
inline const bool knows_multiple_frequencies_pbt =
    HeldOptionsOf<Scheduler, SchedulerSetting, MultipleFrequenciesPBT>::known();
}  // namespace detail

}  // namespace cadre::tune
