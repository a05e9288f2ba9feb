/// \file
/// HyperBand: trials of a bracket wait for each other, and the worse ones end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cadre/checkpoint_config.h"
#include "cadre/tune/scheduler.h"

namespace cadre::tune {

/// HyperBand (Li et al., 2018, "Hyperband: A Novel Bandit-Based Approach to Hyperparameter Optimization",
/// https://arxiv.org/abs/1603.06560): brackets of successive halving, each with more trials and an earlier first
/// comparison than the next. docs/from-ray-tune.md lists the differences from Ray Tune's schedulers.
///
/// Let s_max be the largest number with reduction_factor^s_max <= max_t. Bracket s, from s_max down to 0, has
/// ceil((s_max + 1) / (s + 1) * reduction_factor^s) trials and s + 1 milestones, of which the last is max_t and each
/// other one a reduction_factor-th of the next, rounded down. After bracket 0 the next band of brackets begins. Trials
/// fill brackets in the order in which they are made.
///
/// A trial that reaches a milestone waits there, in its process if the limits of TuneConfig::parking allow. When the
/// bracket is full, or no more trials are to be made, and all its trials have reached the milestone, the best
/// 1/reduction_factor of them continue; the others end with TrialStatus::stopped. NaN is the worst value; of equal
/// values those of earlier trials are better. Trials that end otherwise are not waited for. A result without time_attr
/// or metric changes nothing.
///
/// A population of which no bracket would be full still runs, with fewer comparisons: with max_t = 81 and
/// reduction_factor = 3 the first bracket has 81 trials, and a band 143. ASHAScheduler needs no such numbers.
///
/// With the searcher BOHB it is BOHB (Falkner et al., 2018, https://arxiv.org/abs/1807.01774).
struct HyperBandScheduler {
  std::string time_attr = "training_iteration";  ///< a metric that only grows
  Objective metric = {};                         ///< default: the TuneConfig's; if set, it must be the same
  std::optional<Mode> mode = {};                 ///< direction of good values; default: from `metric` or the TuneConfig
  double max_t = 81;                             ///< a trial has come to its end at this time_attr; 1 to 10^9
  double reduction_factor = 3;                   ///< one of so many trials continues; 1.1 or more
  bool stop_last_trials = true;                  ///< ends trials at max_t; otherwise the best go on

  std::unique_ptr<Scheduler> make(const SchedulerSetting& setting) const;  ///< returns the scheduler
  void check(const TunerOptions& options, Faults& faults) const;           ///< finds what is wrong
  /// Returns that trials wait, and what it reads.
  Scheduler::Traits traits() const {
    return {.pauses = true, .metrics = {time_attr, metric.name}, .limit = detail::limit_of(*this)};
  }
};
/// Ray Tune's name of the scheduler to use with BOHB.
using HyperBandForBOHB = HyperBandScheduler;

namespace detail {
extern template class HeldOptionsOf<Scheduler, SchedulerSetting, HyperBandScheduler>;
inline const bool knows_hyperband = HeldOptionsOf<Scheduler, SchedulerSetting, HyperBandScheduler>::known();
}  // namespace detail

}  // namespace cadre::tune
