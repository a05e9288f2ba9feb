// The environment of the process, of which os.environ is a copy that Python makes when it starts.
#pragma once

#include <nanobind/nanobind.h>

namespace cadre::python {

// Adds changed_environment() to the module: the variables that were set since its last call, or since the module was
// imported, by name; None for those that were removed. What Python sets itself may be among them.
void bind_environment(nanobind::module_& module);

}  // namespace cadre::python
