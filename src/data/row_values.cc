#include "data/row_values.h"

#include <arrow/array/concatenate.h>
#include <arrow/builder.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/record.h"
#include "data/arrow_status.h"

namespace cadre {
template class Record<data::RowTag>;
}  // namespace cadre

namespace cadre::data {
namespace {

constexpr const char* kMaking = "cannot make a batch of rows";

Value unsigned_value(std::uint64_t number) {
  if (number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return Value(number);
  return static_cast<double>(number);
}

template <class ListArray>
Value list_at(const ListArray& array, std::int64_t row) {
  List items;
  const auto& values = *array.values();
  const std::int64_t begin = array.value_offset(row);
  for (std::int64_t i = begin; i < begin + array.value_length(row); ++i) items.push_back(value_at(values, i));
  return items;
}

// What kind of values a column of rows has.
enum class Kind { none, boolean, integer, number, text, list };

struct ColumnOfRows {
  std::string name;
  std::vector<const Value*> values;  // nullptr: the row has none
};

[[noreturn]] void does_not_fit(const std::string& column, std::size_t row, const Value& value, const char* others) {
  throw InvalidArgument(
      fmt::format("column \"{}\": row {} has {}, which does not go together with the {} of other rows; a column has "
                  "bools, numbers, "
                  "texts, or lists of them",
                  column, row, to_json(value), others));
}

Kind kind_of(const std::string& column, std::size_t row, const Value& value) {
  if (value.is_bool()) return Kind::boolean;
  if (value.is_integer()) return Kind::integer;
  if (value.is_double()) return Kind::number;
  if (value.is_string()) return Kind::text;
  if (value.is_list()) return Kind::list;
  does_not_fit(column, row, value, "values");
}

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::none:
      return "nulls";
    case Kind::boolean:
      return "bools";
    case Kind::integer:
      return "integers";
    case Kind::number:
      return "numbers";
    case Kind::text:
      return "texts";
    case Kind::list:
      return "lists";
  }
  return "";
}

Kind common_kind(const ColumnOfRows& column) {
  Kind common = Kind::none;
  for (std::size_t row = 0; row < column.values.size(); ++row) {
    const Value* value = column.values[row];
    if (value == nullptr || value->is_null()) continue;
    const Kind kind = kind_of(column.name, row, *value);
    const bool numbers =
        (common == Kind::integer || common == Kind::number) && (kind == Kind::integer || kind == Kind::number);
    if (common == Kind::none) {
      common = kind;
    } else if (numbers) {
      common = std::max(common, kind);
    } else if (common != kind) {
      does_not_fit(column.name, row, *value, name_of(common));
    }
  }
  return common;
}

template <class Builder, class Get>
std::shared_ptr<arrow::Array> build(const ColumnOfRows& column, Get get) {
  Builder builder;
  check(builder.Reserve(std::ssize(column.values)), kMaking);
  for (const Value* value : column.values) {
    check(value == nullptr || value->is_null() ? builder.AppendNull() : builder.Append(get(*value)), kMaking);
  }
  return checked(builder.Finish(), kMaking);
}

std::shared_ptr<arrow::Array> to_array(const ColumnOfRows& column);

std::shared_ptr<arrow::Array> to_list_array(const ColumnOfRows& column) {
  ColumnOfRows items{column.name, {}};
  std::vector<std::int32_t> offsets{0};
  for (const Value* value : column.values) {
    if (value != nullptr && value->is_list()) {
      for (const Value& item : value->items()) items.values.push_back(&item);
    }
    offsets.push_back(static_cast<std::int32_t>(items.values.size()));
  }
  arrow::Int32Builder builder;
  for (std::size_t i = 0; i < offsets.size(); ++i) {  // a null offset makes a null list
    const bool is_null = i < column.values.size() && (column.values[i] == nullptr || column.values[i]->is_null());
    check(is_null ? builder.AppendNull() : builder.Append(offsets[i]), kMaking);
  }
  return checked(arrow::ListArray::FromArrays(*checked(builder.Finish(), kMaking), *to_array(items)), kMaking);
}

std::shared_ptr<arrow::Array> to_array(const ColumnOfRows& column) {
  switch (common_kind(column)) {
    case Kind::none:
      return std::make_shared<arrow::NullArray>(std::ssize(column.values));
    case Kind::boolean:
      return build<arrow::BooleanBuilder>(column, [](const Value& value) { return value.get<bool>(); });
    case Kind::integer:
      return build<arrow::Int64Builder>(column, [](const Value& value) { return value.get<std::int64_t>(); });
    case Kind::number:
      return build<arrow::DoubleBuilder>(column, [](const Value& value) { return value.get<double>(); });
    case Kind::text:
      return build<arrow::StringBuilder>(column, [](const Value& value) { return value.get<std::string>(); });
    case Kind::list:
      break;
  }
  return to_list_array(column);
}

}  // namespace

Value value_at(const arrow::Array& array, std::int64_t row) {
  if (array.IsNull(row)) return {};
  const auto as = [&]<class Array>() -> const Array& { return static_cast<const Array&>(array); };
  using enum arrow::Type::type;
  switch (array.type_id()) {
    case BOOL:
      return as.operator()<arrow::BooleanArray>().Value(row);
    case INT8:
      return as.operator()<arrow::Int8Array>().Value(row);
    case INT16:
      return as.operator()<arrow::Int16Array>().Value(row);
    case INT32:
      return as.operator()<arrow::Int32Array>().Value(row);
    case INT64:
      return as.operator()<arrow::Int64Array>().Value(row);
    case UINT8:
      return as.operator()<arrow::UInt8Array>().Value(row);
    case UINT16:
      return as.operator()<arrow::UInt16Array>().Value(row);
    case UINT32:
      return as.operator()<arrow::UInt32Array>().Value(row);
    case UINT64:
      return unsigned_value(as.operator()<arrow::UInt64Array>().Value(row));
    case FLOAT:
      return as.operator()<arrow::FloatArray>().Value(row);
    case DOUBLE:
      return as.operator()<arrow::DoubleArray>().Value(row);
    case STRING:
    case BINARY:
      return as.operator()<arrow::BinaryArray>().GetView(row);
    case LARGE_STRING:
    case LARGE_BINARY:
      return as.operator()<arrow::LargeBinaryArray>().GetView(row);
    case FIXED_SIZE_BINARY:
      return as.operator()<arrow::FixedSizeBinaryArray>().GetView(row);
    case LIST:
      return list_at(as.operator()<arrow::ListArray>(), row);
    case LARGE_LIST:
      return list_at(as.operator()<arrow::LargeListArray>(), row);
    case FIXED_SIZE_LIST:
      return list_at(as.operator()<arrow::FixedSizeListArray>(), row);
    default:
      return checked(array.GetScalar(row), "cannot read a value")->ToString();
  }
}

Value to_value(const arrow::Scalar& scalar) {
  const auto array = checked(arrow::MakeArrayFromScalar(scalar, 1), "cannot read a value");
  return value_at(*array, 0);
}

Row row_at(const arrow::RecordBatch& batch, std::int64_t row) {
  Dict entries;
  for (int i = 0; i < batch.num_columns(); ++i)
    entries.emplace_back(batch.column_name(i), value_at(*batch.column(i), row));
  return Row(std::move(entries));
}

Batch to_batch(std::span<const Row> rows) {
  std::vector<ColumnOfRows> columns;
  for (std::size_t number = 0; number < rows.size(); ++number) {
    for (const auto& [name, value] : rows[number]) {
      auto column = std::ranges::find(columns, name, &ColumnOfRows::name);
      if (column == columns.end()) column = columns.insert(columns.end(), {name, {}});
      column->values.resize(rows.size(), nullptr);
      column->values[number] = &value;
    }
  }
  std::vector<std::pair<std::string, Column>> made;
  for (const ColumnOfRows& column : columns) made.emplace_back(column.name, Column(to_array(column)));
  return Batch(std::move(made));
}

}  // namespace cadre::data
