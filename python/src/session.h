// Binds the functions that a training function calls.
#pragma once

#include <nanobind/nanobind.h>

namespace cadre::python {

// Adds report, get_checkpoint and the trial's context to the module.
void bind_session(nanobind::module_& module);

}  // namespace cadre::python
