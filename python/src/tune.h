// Experiments: cadre.tune's Tuner and results.
#pragma once

#include <nanobind/nanobind.h>

namespace cadre::python {

// Adds Tuner and Results to the module.
void bind_tune(nanobind::module_& module);

}  // namespace cadre::python
