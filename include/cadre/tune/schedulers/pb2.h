/// \file
/// Population Based Bandits.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cadre/tune/scheduler.h"
#include "cadre/tune/schedulers/population_based_training.h"

namespace cadre::tune {

/// Population Based Bandits (Parker-Holder, Nguyen and Roberts, "Provably Efficient Online Hyperparameter Optimization
/// with Population-Based Bandits", 2020, https://arxiv.org/abs/2002.02518), after Ray Tune's scheduler of the same
/// name; docs/from-ray-tune.md lists the differences.
///
/// It is PopulationBasedTraining with another way to explore, for small populations: a trial that exploits gets the
/// hyper-parameters that promise the most. A Gaussian process learns how fast scores have grown from one interval to
/// the next, by the time and the score at the beginning of the interval and by the hyper-parameters; old results say
/// less. Chosen is the highest upper confidence bound at the donor's checkpoint. Hyper-parameters of trials that have
/// exploited and not come to their next interval are counted as if they had given what is expected, so those chosen at
/// once differ. Before any trial has been at two intervals, hyper-parameters are drawn from `hyperparam_bounds`.
///
/// The 200 latest results count. A trial's hyper-parameters outside their bounds count as if they were at them.
struct PB2 {
  std::string time_attr = {};        ///< must be set: "training_iteration", "time_total_s", or a metric that only grows
  Objective metric = {};             ///< default: the TuneConfig's; if set, it must be the same
  std::optional<Mode> mode = {};     ///< direction of good scores; default: from `metric` or the TuneConfig
  double perturbation_interval = 0;  ///< in units of time_attr; must be set, above 0
  double burn_in_period = 0;         ///< no comparison before this time_attr; 0 or more
  /// The hyper-parameters to choose and their domains, at least one: uniform, loguniform, randint or lograndint, also
  /// with a q. A logarithmic domain is modelled by its logarithm; integers and multiples of a q remain such. Keys must
  /// be in every config, not within options of a choice or a grid; those of a nested space are given in braces.
  Mutations hyperparam_bounds = {};
  ExploreFunction custom_explore_fn = {};  ///< called after the choice
  double quantile_fraction = 0.25;         ///< size of the lower and of the upper quantile, 0 to 0.5
  bool log_config = true;                  ///< writes pbt_global.txt and pbt_policy_<trial id>.txt
  bool require_attrs = true;  ///< a result without time_attr or metric fails its trial; otherwise it is ignored
  bool synch = false;         ///< all live trials wait for each other at every interval, and are then compared at once
  double synch_deadline = 0;  ///< with synch: as PopulationBasedTraining::synch_deadline

  std::unique_ptr<Scheduler> make(const SchedulerSetting& setting) const;       ///< returns the scheduler
  void check(const TunerOptions& options, Faults& faults) const;                ///< finds what is wrong
  void complete(const TunerOptions& options, std::vector<std::string>& notes);  ///< puts bounds in order
  Scheduler::Traits traits() const;                                             ///< it exploits
};

namespace detail {
extern template class HeldOptionsOf<Scheduler, SchedulerSetting, PB2>;
inline const bool knows_pb2 = HeldOptionsOf<Scheduler, SchedulerSetting, PB2>::known();
}  // namespace detail

}  // namespace cadre::tune
