// Datasets for tests: made of JSON, and executed in threads of the test.
#pragma once

#include <arrow/array.h>
#include <arrow/json/from_string.h>
#include <arrow/table.h>
#include <arrow/type.h>

#include <cstdint>
#include <limits>
#include <string>

#include "cadre/data/dataset.h"

namespace cadre::data {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

inline Dataset threads(const Dataset& dataset, std::int64_t count = 3) {
  return dataset.with_options({.num_threads = count, .function_place = FunctionPlace::threads});
}

// Makes rows of a list of JSON objects.
inline Dataset from_json(const arrow::FieldVector& fields, const std::string& rows) {
  const auto array = arrow::json::ArrayFromJSONString(arrow::struct_(fields), rows).ValueOrDie();
  return threads(from_arrow(
      arrow::Table::FromRecordBatches({arrow::RecordBatch::FromStructArray(array).ValueOrDie()}).ValueOrDie()));
}

}  // namespace cadre::data
