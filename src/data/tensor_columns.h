// Columns of tensors: conversion from the forms of other libraries, and to consecutive numbers.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cadre::data {

// Returns the dataset's field for a file's field. Ray Data's tensors of one shape, which Arrow reads as lists with a
// note, become Arrow's fixed_shape_tensor. A type with permuted dimensions becomes one of the logical shape without a
// permutation.
std::shared_ptr<arrow::Field> with_tensor_type(const std::shared_ptr<arrow::Field>& stored);
// Converts values of such a field to the type made by with_tensor_type(). `doing` begins the error for rows whose
// shape differs from their type's.
std::shared_ptr<arrow::Array> to_tensor_type(const std::shared_ptr<arrow::Array>& stored,
                                             const std::shared_ptr<arrow::DataType>& type, arrow::MemoryPool* pool,
                                             const std::string& doing);

// Returns Arrow's fixed_shape_tensor for rows of this shape.
std::shared_ptr<arrow::DataType> tensor_type(const std::shared_ptr<arrow::DataType>& value_type,
                                             const std::vector<std::int64_t>& row_shape);
// Makes a fixed_shape_tensor of Arrow's. `values` must have no nulls, and a multiple of a row's number of values.
std::shared_ptr<arrow::Array> make_tensors(const std::shared_ptr<arrow::Array>& values,
                                           const std::vector<std::int64_t>& row_shape);

// Returns a field for tensors of different shapes with this number of dimensions: Ray Data's, as a struct with a note.
std::shared_ptr<arrow::Field> variable_tensor_field(const std::string& name,
                                                    const std::shared_ptr<arrow::DataType>& value_type,
                                                    std::size_t dimensions);
// Makes an array for such a field of the values of all rows and the shape of each row.
std::shared_ptr<arrow::Array> make_variable_tensors(const arrow::Field& field,
                                                    const std::shared_ptr<arrow::Array>& values,
                                                    std::span<const std::vector<std::int64_t>> shapes);

// A column as consecutive numbers, with the shape of a row; an empty shape: single values.
struct FlatColumn {
  std::shared_ptr<arrow::Array> values;
  std::vector<std::int64_t> row_shape;
};
// Throws InvalidArgument, with the column, if rows have different shapes.
FlatColumn flatten(const arrow::Field& field, const std::shared_ptr<arrow::Array>& column);
// Returns true if a row, or a value in a row, is null.
bool has_nulls(const arrow::Array& array);

}  // namespace cadre::data
