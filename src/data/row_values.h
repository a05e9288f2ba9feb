// Conversion of Arrow's values to Cadre's, and of rows to arrays.
#pragma once

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>

#include <cstdint>
#include <memory>

#include "cadre/data/batch.h"
#include "cadre/value.h"

namespace cadre::data {

// Returns one value: null, bool, integer, double, string or list; a value of another type as its text.
Value value_at(const arrow::Array& array, std::int64_t row);
// Returns the value of a scalar, as above.
Value to_value(const arrow::Scalar& scalar);

Row row_at(const arrow::RecordBatch& batch, std::int64_t row);

}  // namespace cadre::data
