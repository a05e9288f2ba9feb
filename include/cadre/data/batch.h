/// \file
/// Batches: some rows of a dataset, which its functions get and return.
///
///     data::Batch halve(const data::Batch& batch) {
///       std::vector<double> halves;
///       for (const double value : batch.values<double>("price")) halves.push_back(value / 2);
///       return batch.with("half", std::move(halves));
///     }
///
/// A Batch is an Arrow record batch behind an interface that needs no header of Arrow. Types have their Arrow names:
/// "int64", "double", "string", "extension<arrow.fixed_shape_tensor[value_type=uint8, shape=[28,28]]>".
///
/// Threads: any. Batches and Columns are immutable.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cadre/error.h"
#include "cadre/value.h"

namespace arrow {
class Array;
class RecordBatch;
}  // namespace arrow

namespace cadre::data {

/// One row: its values by column name, in column order. Null values are included, as null.
using Row = Record<struct RowTag>;

/// A number type that Arrow stores as C++ does.
template <class T>
concept ColumnNumber = std::same_as<T, std::int8_t> || std::same_as<T, std::int16_t> || std::same_as<T, std::int32_t> ||
                       std::same_as<T, std::int64_t> || std::same_as<T, std::uint8_t> ||
                       std::same_as<T, std::uint16_t> || std::same_as<T, std::uint32_t> ||
                       std::same_as<T, std::uint64_t> || std::same_as<T, float> || std::same_as<T, double>;

/// One column of values, without its name. Copies share the values.
class Column {
 public:
  /// Makes a column of numbers, which are moved and not copied.
  template <ColumnNumber T>
  Column(std::vector<T> values) : array_(make(std::move(values))) {}
  /// Makes a column with as many numbers in each row as the product of `row_shape`, whose entries are 1 or more: {28,
  /// 28} for images of 28 x 28 bytes. A `row_shape` that is not empty makes a column of Arrow's fixed_shape_tensor,
  /// which pyarrow and Ray Data also read as tensors. Throws InvalidArgument if the number of values is not a multiple
  /// of that product.
  template <ColumnNumber T>
  Column(std::vector<T> values, const std::vector<std::int64_t>& row_shape)
      : array_(reshape(make(std::move(values)), row_shape)) {}
  /// Makes a column of truth values.
  Column(const std::vector<bool>& values);
  /// Makes a column of texts, in UTF-8.
  Column(const std::vector<std::string>& values);
  /// Makes a column of an Arrow array, of any type. Throws InvalidArgument for a null pointer.
  explicit Column(std::shared_ptr<::arrow::Array> array);

  /// Makes a column that refers to numbers without copying them; they must not change, and `owner` keeps them alive as
  /// long as they are used. Throws the errors of the constructors.
  template <ColumnNumber T>
  static Column view(std::span<const T> values, std::shared_ptr<const void> owner,
                     const std::vector<std::int64_t>& row_shape = {}) {
    return make_view(values, std::move(owner), row_shape);
  }

  std::int64_t size() const;                                               ///< returns the number of rows
  const std::shared_ptr<::arrow::Array>& arrow() const { return array_; }  ///< returns the array; never null

 private:
  // The library defines these for all ColumnNumbers. They are not constrained: some compilers write constraints into
  // the names that the linker sees (clang 18, g++ 14), and others do not.
  template <class T>
  static std::shared_ptr<::arrow::Array> make(std::vector<T> values);
  template <class T>
  static Column make_view(std::span<const T> values, std::shared_ptr<const void> owner,
                          const std::vector<std::int64_t>& row_shape);

  static std::shared_ptr<::arrow::Array> reshape(std::shared_ptr<::arrow::Array> values,
                                                 const std::vector<std::int64_t>& row_shape);

  std::shared_ptr<::arrow::Array> array_;
};

/// Rows of named columns. Copies are cheap and share their columns. All functions that get a column's name throw
/// InvalidArgument, with the existing names, if the batch does not have it.
class Batch {
 public:
  /// Makes a batch without columns and rows.
  Batch();
  /// Makes a batch of these columns, in this order. Throws InvalidArgument that names columns of different lengths, or
  /// a duplicate name.
  Batch(std::initializer_list<std::pair<std::string, Column>> columns);
  /// Makes a batch of existing columns, in the same way.
  explicit Batch(std::vector<std::pair<std::string, Column>> columns);
  /// Makes a batch of an Arrow record batch, whose columns have different names. Throws InvalidArgument for a null
  /// pointer.
  explicit Batch(std::shared_ptr<::arrow::RecordBatch> batch);

  std::int64_t num_rows() const;                                  ///< returns the number of rows, 0 or more
  std::vector<std::string> columns() const;                       ///< returns the names of the columns, in order
  bool has(std::string_view column) const;                        ///< returns true if there is such a column
  std::string type(std::string_view column) const;                ///< returns the type of a column, as Arrow writes it
  std::int64_t null_count(std::string_view column) const;         ///< returns the number of rows without a value
  bool is_null(std::string_view column, std::int64_t row) const;  ///< returns true if that row has no value
  const std::shared_ptr<::arrow::RecordBatch>& arrow() const { return batch_; }  ///< returns the batch; never null

  /// Returns the shape of each row of a column: empty for single values, {28, 28} for images of that size, and {width}
  /// for fixed-size binary. Tensors are Arrow's fixed_shape_tensor, Ray Data's tensor types, lists of a fixed size, and
  /// lists of equal length in all rows of this batch, including lists of lists. Throws InvalidArgument, with two rows
  /// and their lengths, for others.
  std::vector<std::int64_t> row_shape(std::string_view column) const;
  /// Returns the type of the numbers in a column's rows, as Arrow writes it: "uint8" for images of bytes. Throws like
  /// row_shape.
  std::string number_type(std::string_view column) const;
  /// Returns the numbers of a column in place, without copying: as many for each row as the product of its row_shape,
  /// one row after the other. Valid as long as a copy of this Batch exists. Throws InvalidArgument if the column's type
  /// is not exactly T (fixed-size binary is std::uint8_t), and if it has nulls, which have no number.
  template <ColumnNumber T>
  std::span<const T> values(std::string_view column) const {
    return numbers_in_place<T>(column);
  }
  /// Returns the same numbers, or truth values, as a copy that is converted to T. Throws InvalidArgument if a number
  /// does not fit.
  template <ColumnNumber T>
  std::vector<T> to_vector(std::string_view column) const {
    return converted_numbers<T>(column);
  }
  /// Returns the texts of a column in place; valid as long as a copy of this Batch exists. Throws InvalidArgument if
  /// the column has no texts, or has nulls.
  std::vector<std::string_view> texts(std::string_view column) const;

  /// Returns one value, or throws InvalidArgument if there is no such row: null, bool, integer, double, text, or a list
  /// or dictionary of these. Dates, times, decimals and bytes are texts; durations are integers, in their type's unit.
  /// An entry of a map is a dictionary with "key" and "value". An integer of more than 63 bits is a double.
  Value value(std::string_view column, std::int64_t row) const;
  /// Returns one row. Throws InvalidArgument if there is no such row.
  Row row(std::int64_t row) const;
  std::vector<Row> rows() const;  ///< returns all rows

  /// Returns a batch with this column added, or replacing the column of that name. Throws InvalidArgument if its number
  /// of rows differs.
  Batch with(std::string_view name, const Column& column) const;
  /// Returns a batch of these columns only, in this order.
  Batch select(std::span<const std::string> columns) const;
  /// Returns the rows from `begin`, at most `count`; both are limited to the existing rows.
  Batch slice(std::int64_t begin, std::int64_t count) const;

  /// Returns true if names, types and values are equal; NaN equals NaN.
  friend bool operator==(const Batch& a, const Batch& b);

 private:
  int index_of(std::string_view column) const;
  // Not constrained, for the same reason as in Column.
  template <class T>
  std::span<const T> numbers_in_place(std::string_view column) const;
  template <class T>
  std::vector<T> converted_numbers(std::string_view column) const;

  std::shared_ptr<::arrow::RecordBatch> batch_;
};

/// Returns rows as a batch: a column for each name that any of them has, null if a row does not have it or has a null.
/// A column with integers and doubles is of doubles. Throws InvalidArgument, with row and column, for values whose
/// types do not combine, and for references.
Batch to_batch(std::span<const Row> rows);

}  // namespace cadre::data

namespace cadre {
extern template class Record<data::RowTag>;
}  // namespace cadre
