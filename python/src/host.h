// Python as a host of Cadre (cadre/host.h).
#pragma once

#include <nanobind/nanobind.h>

namespace cadre::python {

// Adds init, shutdown and is_initialized to the module.
void bind_host(nanobind::module_& module);

}  // namespace cadre::python
