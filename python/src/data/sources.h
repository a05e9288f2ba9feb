// The sources of datasets: files, rows in memory, the datasets of a training run.
#pragma once

#include <nanobind/nanobind.h>

namespace cadre::python {

// Adds the readers and their like to the module, which has Dataset already.
void bind_sources(nanobind::module_& module);

}  // namespace cadre::python
