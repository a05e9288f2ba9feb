/// \file
/// First in, first out.
#pragma once

#include <memory>

#include "cadre/tune/scheduler.h"

namespace cadre::tune {

/// A scheduler without decisions: trials start in the order in which they were made and run to their end.
struct FIFO {
  std::unique_ptr<Scheduler> make(const SchedulerSetting& setting) const;  ///< returns the scheduler
};

namespace detail {
extern template class HeldOptionsOf<Scheduler, SchedulerSetting, FIFO>;
inline const bool knows_fifo = HeldOptionsOf<Scheduler, SchedulerSetting, FIFO>::known();
}  // namespace detail

}  // namespace cadre::tune
