// Columns whose rows are tensors: how others store them, and as numbers one behind the other.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cadre::data {

// A field of a file as datasets have it. Ray Data's tensors of one shape, which Arrow reads as lists and a note, become
// Arrow's fixed_shape_tensor, and its dimensions are in the order in which its values lie.
std::shared_ptr<arrow::Field> with_tensor_type(const std::shared_ptr<arrow::Field>& stored);
// The values of such a field, of the type that with_tensor_type() has made of theirs. `doing` begins the error for rows
// that have not the shape which their type says.
std::shared_ptr<arrow::Array> to_tensor_type(const std::shared_ptr<arrow::Array>& stored,
                                             const std::shared_ptr<arrow::DataType>& type, arrow::MemoryPool* pool,
                                             const std::string& doing);

// Rows of this shape as Arrow's fixed_shape_tensor; `values` has no nulls, and as many as there are for whole rows.
std::shared_ptr<arrow::Array> make_tensors(const std::shared_ptr<arrow::Array>& values,
                                           const std::vector<std::int64_t>& row_shape);

// The numbers of a column one behind the other, and what each row consists of: nothing for single values.
struct FlatColumn {
  std::shared_ptr<arrow::Array> values;
  std::vector<std::int64_t> row_shape;
};
// Throws InvalidArgument, with the column, where rows have different shapes.
FlatColumn flatten(const arrow::Field& field, const std::shared_ptr<arrow::Array>& column);
// Returns whether a row is null, or a value in one.
bool has_nulls(const arrow::Array& array);

}  // namespace cadre::data
