/// \file
/// The median stopping rule: trials worse than the median of the others end early.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cadre/checkpoint_config.h"
#include "cadre/tune/scheduler.h"

namespace cadre::tune {

/// The median stopping rule (Golovin et al., 2017, "Google Vizier: A Service for Black-Box Optimization", section
/// 3.2.1), with the behaviour of Ray Tune's scheduler of the same name; docs/from-ray-tune.md lists the differences.
///
/// A trial that reports at time_attr t, not below grace_period, is compared with all other trials, ended ones too,
/// whose last result is at t or later: with the median of the averages of their metric from grace_period up to t. If
/// its own best value so far is worse than that, it is stopped: TrialStatus::stopped. An average that is not finite
/// does not count. While fewer than min_samples_required trials can be compared with, the trial is paused when others
/// wait, so that these can catch up. A result without time_attr or metric changes nothing.
struct MedianStoppingRule {
  std::string time_attr = "time_total_s";  ///< a metric that only grows
  Objective metric = {};                   ///< default: the TuneConfig's; if set, it must be the same
  std::optional<Mode> mode = {};           ///< direction of good values; default: from `metric` or the TuneConfig
  double grace_period = 60;                ///< results before this time_attr do not count; 0 or more
  std::int64_t min_samples_required = 3;   ///< trials to compare with; at least 1
  double min_time_slice = 0;               ///< a trial trains at least so long between two pauses; 0 or more
  bool hard_stop = true;                   ///< false: a bad trial is paused, once, and goes on when others have ended

  std::unique_ptr<Scheduler> make(const SchedulerSetting& setting) const;  ///< returns the scheduler
  void check(const TunerOptions& options, Faults& faults) const;           ///< finds what is wrong
  /// Returns that trials wait, and what it reads.
  Scheduler::Traits traits() const { return {.pauses = true, .metrics = {time_attr, metric.name}}; }
};

namespace detail {
extern template class HeldOptionsOf<Scheduler, SchedulerSetting, MedianStoppingRule>;
inline const bool knows_median_stopping_rule = HeldOptionsOf<Scheduler, SchedulerSetting, MedianStoppingRule>::known();
}  // namespace detail

}  // namespace cadre::tune
