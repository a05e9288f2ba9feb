// Conversion of Arrow's error statuses to Cadre's errors.
#pragma once

#include <arrow/result.h>
#include <arrow/status.h>

#include <string>
#include <utility>

#include "cadre/error.h"

namespace cadre::data {

// Throws if `status` is an error; the message begins with `doing`, such as "cannot read a.parquet, row group 3".
// Throws NotFound, InvalidArgument if a value does not fit a type or a column, OutOfSpace, and StorageError for the
// rest.
void check(const arrow::Status& status, const std::string& doing);

template <class T>
T checked(arrow::Result<T> result, const std::string& doing) {
  check(result.status(), doing);
  return std::move(result).ValueUnsafe();
}

}  // namespace cadre::data
