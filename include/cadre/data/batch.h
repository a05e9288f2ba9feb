/// \file
/// Some rows of a dataset: what the functions of a dataset get and return.
///
///     data::Batch halve(const data::Batch& batch) {
///       std::vector<double> halves;
///       for (const double value : batch.values<double>("price")) halves.push_back(value / 2);
///       return batch.with("half", std::move(halves));
///     }
///
/// A Batch is an Arrow record batch behind an interface that needs no header of Arrow. Arrow's types are named as Arrow
/// names them: "int64", "double", "string",
/// "extension<arrow.fixed_shape_tensor[value_type=uint8, shape=[28,28]]>".
///
/// Threads: any. Nothing changes what a Batch or a Column has.
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

/// One row: its values by the names of their columns, in their order. Null values are there, as null.
using Row = Record<struct RowTag>;

/// Numbers that Arrow keeps as C++ does.
template <class T>
concept ColumnNumber = std::same_as<T, std::int8_t> || std::same_as<T, std::int16_t> || std::same_as<T, std::int32_t> ||
                       std::same_as<T, std::int64_t> || std::same_as<T, std::uint8_t> ||
                       std::same_as<T, std::uint16_t> || std::same_as<T, std::uint32_t> ||
                       std::same_as<T, std::uint64_t> || std::same_as<T, float> || std::same_as<T, double>;

/// One column of values, without its name. Copies share the values.
class Column {
 public:
  /// Numbers, which are moved and not copied.
  template <ColumnNumber T>
  Column(std::vector<T> values) : array_(make(std::move(values))) {}
  /// Numbers, as many for each row as the product of `row_shape`, whose entries are 1 or more: images of 28 x 28 bytes
  /// are {28, 28}. A `row_shape` that is not empty makes a column of Arrow's fixed_shape_tensor, which pyarrow and Ray
  /// Data read as tensors too. Throws InvalidArgument where the number of values is no multiple of that.
  template <ColumnNumber T>
  Column(std::vector<T> values, const std::vector<std::int64_t>& row_shape)
      : array_(reshape(make(std::move(values)), row_shape)) {}
  /// Truth values.
  Column(const std::vector<bool>& values);
  /// Texts, in UTF-8.
  Column(const std::vector<std::string>& values);
  /// An array of Arrow's, of any type. Throws InvalidArgument for a null pointer.
  explicit Column(std::shared_ptr<::arrow::Array> array);

  /// Numbers that somebody else has, which are not copied and do not change; `owner` keeps them as long as they are
  /// used. Throws as the constructors do.
  template <ColumnNumber T>
  static Column view(std::span<const T> values, std::shared_ptr<const void> owner,
                     const std::vector<std::int64_t>& row_shape = {}) {
    return make_view(values, std::move(owner), row_shape);
  }

  std::int64_t size() const;                                               ///< rows
  const std::shared_ptr<::arrow::Array>& arrow() const { return array_; }  ///< never null

 private:
  // The library has these for all ColumnNumbers. They are not constrained: some compilers write constraints into the
  // names that the linker sees (clang 18, g++ 14), and others do not.
  template <class T>
  static std::shared_ptr<::arrow::Array> make(std::vector<T> values);
  template <class T>
  static Column make_view(std::span<const T> values, std::shared_ptr<const void> owner,
                          const std::vector<std::int64_t>& row_shape);

  static std::shared_ptr<::arrow::Array> reshape(std::shared_ptr<::arrow::Array> values,
                                                 const std::vector<std::int64_t>& row_shape);

  std::shared_ptr<::arrow::Array> array_;
};

/// Rows of named columns. Copies are cheap and share their columns. Where a function is given a column's name that the
/// batch does not have, it throws InvalidArgument that lists those it has.
class Batch {
 public:
  /// Without columns and rows.
  Batch();
  /// Of these columns, in this order. Throws InvalidArgument that names columns of different lengths, and a name that
  /// is there twice.
  Batch(std::initializer_list<std::pair<std::string, Column>> columns);
  /// The same with columns that are there already.
  explicit Batch(std::vector<std::pair<std::string, Column>> columns);
  /// A record batch of Arrow's, whose columns have different names. Throws InvalidArgument for a null pointer.
  explicit Batch(std::shared_ptr<::arrow::RecordBatch> batch);

  std::int64_t num_rows() const;                                                 ///< 0 or more
  std::vector<std::string> columns() const;                                      ///< their names, in order
  bool has(std::string_view column) const;                                       ///< whether there is such a column
  std::string type(std::string_view column) const;                               ///< as Arrow writes it
  std::int64_t null_count(std::string_view column) const;                        ///< rows that have no value there
  bool is_null(std::string_view column, std::int64_t row) const;                 ///< whether that row has none
  const std::shared_ptr<::arrow::RecordBatch>& arrow() const { return batch_; }  ///< never null

  /// What each row of a column consists of: empty for single values, {28, 28} for images of that size, and {width} for
  /// fixed-size binary. Tensors are Arrow's fixed_shape_tensor, Ray Data's tensor types, lists of a fixed size, and
  /// lists that are equally long in all rows of this batch; lists of lists too. Throws InvalidArgument, with two rows
  /// and their lengths, for others.
  std::vector<std::int64_t> row_shape(std::string_view column) const;
  /// The type of the values that the rows of a column consist of, as Arrow writes it: "uint8" for images of bytes.
  /// Throws as row_shape.
  std::string number_type(std::string_view column) const;
  /// The numbers of a column as they lie in memory, nothing is copied: as many for each row as the product of its
  /// row_shape, one row after the other. Good as long as a copy of this Batch exists. Throws InvalidArgument where the
  /// column's type is not exactly T (fixed-size binary is std::uint8_t), and where it has nulls, which have no number.
  template <ColumnNumber T>
  std::span<const T> values(std::string_view column) const {
    return numbers_in_place<T>(column);
  }
  /// The same numbers, or truth values, converted to T and copied. Throws InvalidArgument where a number does not fit.
  template <ColumnNumber T>
  std::vector<T> to_vector(std::string_view column) const {
    return converted_numbers<T>(column);
  }
  /// The texts of a column, which stay where they are; good as long as a copy of this Batch exists. Throws
  /// InvalidArgument where it has none, or nulls.
  std::vector<std::string_view> texts(std::string_view column) const;

  /// One value: null, bool, integer, double, text, or a list or dictionary of them. Dates, times and decimals are
  /// texts, bytes too; durations are integers, in their type's unit. An entry of a map is a dictionary with "key" and
  /// "value". An integer of more than 63 bits is a double.
  Value value(std::string_view column, std::int64_t row) const;
  /// One row. Throws InvalidArgument where there is no such row.
  Row row(std::int64_t row) const;
  std::vector<Row> rows() const;  ///< all of them

  /// The same with one column more, or another one in the place of that name. Throws InvalidArgument where it has not
  /// as many rows.
  Batch with(std::string_view name, const Column& column) const;
  /// These columns only, in this order.
  Batch select(std::span<const std::string> columns) const;
  /// Rows from `begin` on, at most `count`; both are cut to what there is.
  Batch slice(std::int64_t begin, std::int64_t count) const;

  /// The same names, types and values; NaN equals NaN.
  friend bool operator==(const Batch& a, const Batch& b);

 private:
  int index_of(std::string_view column) const;
  // Not constrained, as Column's.
  template <class T>
  std::span<const T> numbers_in_place(std::string_view column) const;
  template <class T>
  std::vector<T> converted_numbers(std::string_view column) const;

  std::shared_ptr<::arrow::RecordBatch> batch_;
};

/// Rows as a batch: a column for each name that any of them has, null where a row has none or a null. A column whose
/// values are integers and doubles is of doubles. Throws InvalidArgument, with row and column, for values that do not
/// go together, and for references.
Batch to_batch(std::span<const Row> rows);

}  // namespace cadre::data

namespace cadre {
extern template class Record<data::RowTag>;
}  // namespace cadre
