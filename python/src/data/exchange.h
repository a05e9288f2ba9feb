// Rows on their way between C++ and Python, by Arrow's C data interface: nothing is copied.
#pragma once

#include <arrow/type_fwd.h>
#include <nanobind/nanobind.h>

#include <memory>

#include "cadre/data/batch.h"

namespace cadre::python {

// Returns what __arrow_c_array__ returns: the capsules of a schema and an array. The GIL must be held, here and below.
nanobind::tuple array_capsules(const data::Batch& batch);
// Returns what __arrow_c_schema__ returns.
nanobind::object schema_capsule(const arrow::Schema& schema);
// Returns the batch of an object with __arrow_c_array__. Raises TypeError for another one.
data::Batch to_batch(nanobind::handle object);
// Returns the table of an object with __arrow_c_stream__.
std::shared_ptr<arrow::Table> to_table(nanobind::handle object);

}  // namespace cadre::python
