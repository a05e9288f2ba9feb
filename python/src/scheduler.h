// Schedulers written in Python.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "cadre/function.h"
#include "cadre/tune/scheduler.h"

namespace cadre::python {

// Returns the scheduler of which a HostFunction has the pickle. The GIL need not be held.
std::unique_ptr<tune::Scheduler> make_scheduler(const HostFunction& function);

// Adds Population to the module: the trials as a scheduler sees them.
void bind_scheduler(nanobind::module_& module);

}  // namespace cadre::python
