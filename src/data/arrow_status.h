// What Arrow says of a call that failed, as Cadre's errors.
#pragma once

#include <arrow/result.h>
#include <arrow/status.h>

#include <string>
#include <utility>

#include "cadre/error.h"

namespace cadre::data {

// Throws an error that begins with `doing`, as "cannot read a.parquet, row group 3", where the status is none of
// success: NotFound, InvalidArgument for what does not fit a type or a column, OutOfSpace, and StorageError for the
// rest.
void check(const arrow::Status& status, const std::string& doing);

template <class T>
T checked(arrow::Result<T> result, const std::string& doing) {
  check(result.status(), doing);
  return std::move(result).ValueUnsafe();
}

}  // namespace cadre::data
