#include "cadre/tune/schedulers/host_scheduler.h"

#include "cadre/host.h"
#include "cadre/tune/tuner.h"
#include "tune/held_options.h"
#include "worker/host.h"

namespace cadre {

std::unique_ptr<tune::Scheduler> Host::make_scheduler(const HostFunction&, const tune::SchedulerSetting&) {
  throw Error("this host has no schedulers");
}

namespace tune {

std::unique_ptr<Scheduler> HostScheduler::make(const SchedulerSetting& setting) const {
  return worker::host_of(name).make_scheduler(host_function, setting);
}

void HostScheduler::check(const TunerOptions&, Faults& faults) const {
  worker::check_host(name, "host_function", faults);
}

template class detail::HeldOptionsOf<Scheduler, SchedulerSetting, HostScheduler>;

}  // namespace tune
}  // namespace cadre
