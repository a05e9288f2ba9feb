// Arrays whose values lie next to each other in memory.
#pragma once

#include <arrow/type_fwd.h>

#include <memory>
#include <span>

namespace cadre::data {

// Returns one array over the values of all, if these are consecutive in one buffer, and have no nulls; else null. Types
// are numbers, lists of them of a fixed size, and extensions of these, such as tensors. `arrays` is not empty.
std::shared_ptr<arrow::Array> join_adjacent(std::span<const std::shared_ptr<arrow::Array>> arrays);

}  // namespace cadre::data
