// Values of Arrow's arrays as Cadre's, and rows as arrays.
#pragma once

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>

#include <cstdint>
#include <memory>

#include "cadre/data/batch.h"
#include "cadre/value.h"

namespace cadre::data {

// One value: null, bool, integer, double, text or a list; what has another type, as its text.
Value value_at(const arrow::Array& array, std::int64_t row);
// The same of a scalar.
Value to_value(const arrow::Scalar& scalar);

Row row_at(const arrow::RecordBatch& batch, std::int64_t row);

}  // namespace cadre::data
