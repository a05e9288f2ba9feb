// Training runs: cadre.train's trainer, and what its workers call.
#pragma once

#include <nanobind/nanobind.h>

namespace cadre::python {

// Adds the submodule `train`.
void bind_train(nanobind::module_& module);

}  // namespace cadre::python
