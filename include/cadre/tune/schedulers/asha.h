/// \file
/// Asynchronous Successive Halving: bad trials end early.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cadre/checkpoint_config.h"
#include "cadre/tune/scheduler.h"

namespace cadre::tune {

/// Asynchronous Successive Halving (Li et al., 2020, "A System for Massively Parallel Hyperparameter Tuning",
/// https://arxiv.org/abs/1810.05934), with the behaviour of Ray Tune's scheduler of the same name where it is sound;
/// docs/from-ray-tune.md lists the differences.
///
/// Rungs lie at grace_period, grace_period * reduction_factor, grace_period * reduction_factor^2 and so on, up to
/// max_t, in units of time_attr. A trial that reaches a rung is compared with those that have reached it before. If its
/// metric is not among the best 1/reduction_factor of them, it is stopped: TrialStatus::stopped. The first trial at a
/// rung always continues, and so does one that equals the limit. NaN is the worst value. A result that reaches several
/// rungs at once counts at the highest of them. A result without time_attr or metric changes nothing. No trial needs
/// checkpoints.
///
/// With `promote`, as in the paper, a trial waits at each rung in its process, and continues as soon as it is among the
/// best 1/reduction_factor of the rung; whenever a slot is free and no trial can continue, another trial begins. So a
/// good trial that comes early is not kept from resources, and none continues because it was the first. When no trial
/// runs and none is left to begin, those that wait are stopped. Trials that wait may lose their processes
/// (TuneConfig::parking), and then continue from their checkpoints.
struct ASHAScheduler {
  std::string time_attr = "training_iteration";  ///< a metric that only grows
  Objective metric = {};                         ///< default: the TuneConfig's; if set, it must be the same
  std::optional<Mode> mode = {};                 ///< direction of good values; default: from `metric` or the TuneConfig
  double max_t = 100;                            ///< a trial has come to its end at this time_attr; above 0
  double grace_period = 1;                       ///< no trial is stopped before this time_attr; above 0, at most max_t
  double reduction_factor = 4;                   ///< one of so many trials continues; above 1, for at most 1000 rungs
  /// Number of brackets, at least 1. Bracket s lacks the lowest s rungs. Trials are drawn into them at random, more
  /// into brackets with more rungs: by the softmax of these numbers.
  std::int64_t brackets = 1;
  bool stop_last_trials = true;  ///< ends trials at max_t; otherwise the best go on
  bool promote = false;          ///< trials wait at rungs, see above

  std::unique_ptr<Scheduler> make(const SchedulerSetting& setting) const;  ///< returns the scheduler
  void check(const TunerOptions& options, Faults& faults) const;           ///< finds what is wrong
  /// Returns whether trials wait, and what it reads.
  Scheduler::Traits traits() const {
    return {.pauses = promote, .metrics = {time_attr, metric.name}, .limit = detail::limit_of(*this)};
  }
};
/// Ray Tune's other name of it.
using AsyncHyperBandScheduler = ASHAScheduler;

namespace detail {
extern template class HeldOptionsOf<Scheduler, SchedulerSetting, ASHAScheduler>;
inline const bool knows_asha = HeldOptionsOf<Scheduler, SchedulerSetting, ASHAScheduler>::known();
}  // namespace detail

}  // namespace cadre::tune
