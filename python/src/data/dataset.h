// Datasets, their batches and their shards.
#pragma once

#include <nanobind/nanobind.h>

#include "cadre/data/batch.h"

namespace cadre::python {

// A batch, which Python reads by __arrow_c_array__.
struct PythonBatch {
  data::Batch batch;
};

// Adds Dataset and Shard to the module.
void bind_datasets(nanobind::module_& module);

}  // namespace cadre::python
