/// \file
/// A scheduler that a host makes: one written in Python, for example.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cadre/function.h"
#include "cadre/tune/scheduler.h"

namespace cadre::tune {

/// A scheduler of the program's host (cadre/host.h), in the driver.
struct HostScheduler {
  std::string name = {};                  ///< for people
  HostFunction host_function = {};        ///< from which the host makes it
  bool exploits = false;                  ///< as in Scheduler::Traits
  bool pauses = false;                    ///< as in Scheduler::Traits: a trial may have to wait for one not yet made
  std::vector<std::string> metrics = {};  ///< as in Scheduler::Traits

  std::unique_ptr<Scheduler> make(const SchedulerSetting& setting) const;  ///< returns the scheduler
  void check(const TunerOptions& options, Faults& faults) const;           ///< finds what is wrong
  /// Returns what the members say.
  Scheduler::Traits traits() const { return {.exploits = exploits, .pauses = pauses, .metrics = metrics}; }
};

namespace detail {
extern template class HeldOptionsOf<Scheduler, SchedulerSetting, HostScheduler>;
inline const bool knows_host_scheduler = HeldOptionsOf<Scheduler, SchedulerSetting, HostScheduler>::known();
}  // namespace detail

}  // namespace cadre::tune
