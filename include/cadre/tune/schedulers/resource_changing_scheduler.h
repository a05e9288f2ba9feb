/// \file
/// Trials get the resources that others have left.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cadre/checkpoint_config.h"
#include "cadre/tune/scheduler.h"

namespace cadre::tune {

/// A fair share: what the machine has beyond the base resources of all contenders is divided evenly, in steps. A trial
/// gets steps that are free up to its share, rounded up, and gives back what is above it or what others need to begin.
struct DistributeResources {
  /// One step, by resource: "cpus", "gpus" or a custom one. Default: one GPU if the trial has whole GPUs, one CPU
  /// otherwise.
  std::map<std::string, double> increase_by = {};
  std::int64_t increase_by_times = 0;                    ///< the most steps for one trial; 0: any number
  std::map<std::string, double> reserve_resources = {};  ///< amounts that are not given to trials beyond their base
};

/// All to the best: of the trials that run, the best one by its last result, of those below increase_by_times, gets all
/// free steps. The others keep what they have, and give back what others need to begin.
struct DistributeResourcesToTopJob {
  std::map<std::string, double> increase_by = {};        ///< as above
  std::int64_t increase_by_times = 0;                    ///< as above
  std::map<std::string, double> reserve_resources = {};  ///< as above
  Objective metric = {};                                 ///< default: the TuneConfig's
  std::optional<Mode> mode = {};                         ///< default: from `metric` or the TuneConfig
};

/// Gives trials more than with_resources() says, as long as there is more than all trials need; with the behaviour of
/// Ray Tune's scheduler of the same name where it is sound; docs/from-ray-tune.md lists the differences.
///
/// Whenever a trial reports and goes on, its resources are decided anew, never below its base resources: so those of
/// trials that have ended are in use after the next report of each other one. The trial's process is told with the
/// answer to its report: TuneContext::get_trial_resources() returns what it has, and numerical libraries that use
/// OpenMP, as libtorch does, use as many threads as it has CPUs. With `restart`, when its GPUs change, and if it starts
/// workers, which then get what is added, it continues from its checkpoint in a new process instead; a trial that has
/// saved none with its last result keeps what it has. A trial that waits or is tried again gives up what it got.
struct ResourceChangingScheduler {
  AnyScheduler scheduler = {};  ///< decides everything else; default: FIFO
  /// How resources are divided.
  std::variant<DistributeResources, DistributeResourcesToTopJob> resources_allocation = DistributeResources{};
  bool restart = false;  ///< every change takes a new process

  std::unique_ptr<Scheduler> make(const SchedulerSetting& setting) const;  ///< returns the scheduler
  void complete(TunerOptions& options, std::vector<std::string>& notes);   ///< completes scheduler and metric
  void check(const TunerOptions& options, Faults& faults) const;           ///< finds what is wrong
  void take_over(const ResourceChangingScheduler& stored);                 ///< passes stored options on
  Scheduler::Traits traits() const;                                        ///< returns those of the scheduler
  /// Returns those of the scheduler.
  std::vector<std::pair<std::string, Config>> later_configs(const Config& first) const;
};

namespace detail {
extern template class HeldOptionsOf<Scheduler, SchedulerSetting, ResourceChangingScheduler>;
inline const bool knows_resource_changing_scheduler =
    HeldOptionsOf<Scheduler, SchedulerSetting, ResourceChangingScheduler>::known();
}  // namespace detail

}  // namespace cadre::tune
