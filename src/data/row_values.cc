#include "data/row_values.h"

#include <arrow/array/concatenate.h>
#include <arrow/buffer_builder.h>
#include <arrow/builder.h>
#include <arrow/extension/fixed_shape_tensor.h>
#include <arrow/extension_type.h>
#include <arrow/util/float16.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
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

Value struct_at(const arrow::StructArray& array, std::int64_t row) {
  Dict entries;
  for (int i = 0; i < array.num_fields(); ++i)
    entries.emplace_back(array.struct_type()->field(i)->name(), value_at(*array.field(i), row));
  return entries;
}

template <class ListArray>
Value list_at(const ListArray& array, std::int64_t row) {
  List items;
  const auto& values = *array.values();
  const std::int64_t begin = array.value_offset(row);
  for (std::int64_t i = begin; i < begin + array.value_length(row); ++i) items.push_back(value_at(values, i));
  return items;
}

// Returns a tensor's values from `begin` on as nested lists, one level for each dimension from `dimension` on.
Value tensor_at(const arrow::Array& values, std::int64_t begin, const std::vector<std::int64_t>& shape,
                std::size_t dimension) {
  if (dimension == shape.size()) return value_at(values, begin);
  const std::int64_t step = std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(dimension) + 1, shape.end(),
                                            std::int64_t{1}, std::multiplies<>());
  List items;
  for (std::int64_t i = 0; i < shape[dimension]; ++i)
    items.push_back(tensor_at(values, begin + i * step, shape, dimension + 1));
  return items;
}

Value extension_at(const arrow::ExtensionArray& array, std::int64_t row) {
  const auto& type = static_cast<const arrow::ExtensionType&>(*array.type());
  if (type.extension_name() != "arrow.fixed_shape_tensor") return value_at(*array.storage(), row);
  const auto& lists = static_cast<const arrow::FixedSizeListArray&>(*array.storage());
  return tensor_at(*lists.values(), lists.value_offset(row),
                   static_cast<const arrow::extension::FixedShapeTensorType&>(type).shape(), 0);
}

// The kind of the values in a column of rows.
enum class Kind { none, boolean, integer, number, text, list, dictionary };

struct ColumnOfRows {
  std::string name;
  std::vector<const Value*> values;  // nullptr: missing in the row
};

[[noreturn]] void does_not_fit(const std::string& column, std::size_t row, const Value& value, const char* others) {
  throw InvalidArgument(
      fmt::format("column \"{}\": row {} has {}, which does not go together with the {} of other rows; a column has "
                  "bools, numbers, texts, or lists or dictionaries of them",
                  column, row, to_json(value), others));
}

Kind kind_of(const std::string& column, std::size_t row, const Value& value) {
  if (value.is_bool()) return Kind::boolean;
  if (value.is_integer()) return Kind::integer;
  if (value.is_double()) return Kind::number;
  if (value.is_string()) return Kind::text;
  if (value.is_list()) return Kind::list;
  if (value.is_dict()) return Kind::dictionary;
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
    case Kind::dictionary:
      return "dictionaries";
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

void add_entry(std::vector<ColumnOfRows>& columns, const std::string& name, const Value& value, std::size_t row,
               std::size_t rows) {
  auto column = std::ranges::find(columns, name, &ColumnOfRows::name);
  if (column == columns.end()) column = columns.insert(columns.end(), {name, {}});
  column->values.resize(rows, nullptr);
  column->values[row] = &value;
}

std::shared_ptr<arrow::Array> to_struct_array(const ColumnOfRows& column) {
  std::vector<ColumnOfRows> entries;
  arrow::TypedBufferBuilder<bool> there;
  for (std::size_t row = 0; row < column.values.size(); ++row) {
    const Value* value = column.values[row];
    const bool is_there = value != nullptr && value->is_dict();
    check(there.Append(is_there), kMaking);
    if (!is_there) continue;
    for (const auto& [name, entry] : value->dict()) add_entry(entries, name, entry, row, column.values.size());
  }
  arrow::ArrayVector arrays;
  arrow::FieldVector fields;
  for (ColumnOfRows& entry : entries) {
    const auto& array = arrays.emplace_back(to_array({column.name + "." + entry.name, std::move(entry.values)}));
    fields.push_back(arrow::field(entry.name, array->type()));
  }
  const auto bits = checked(there.Finish(), kMaking);
  return std::make_shared<arrow::StructArray>(arrow::struct_(std::move(fields)), std::ssize(column.values),
                                              std::move(arrays), bits);
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
      return to_list_array(column);
    case Kind::dictionary:
      break;
  }
  return to_struct_array(column);
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
    case HALF_FLOAT:
      return arrow::util::Float16::FromBits(as.operator()<arrow::HalfFloatArray>().Value(row)).ToDouble();
    case FLOAT:
      return as.operator()<arrow::FloatArray>().Value(row);
    case DOUBLE:
      return as.operator()<arrow::DoubleArray>().Value(row);
    case DURATION:
      return as.operator()<arrow::DurationArray>().Value(row);
    case STRING:
    case BINARY:
      return as.operator()<arrow::BinaryArray>().GetView(row);
    case LARGE_STRING:
    case LARGE_BINARY:
      return as.operator()<arrow::LargeBinaryArray>().GetView(row);
    case FIXED_SIZE_BINARY:
      return as.operator()<arrow::FixedSizeBinaryArray>().GetView(row);
    case STRING_VIEW:
    case BINARY_VIEW:
      return as.operator()<arrow::BinaryViewArray>().GetView(row);
    case DICTIONARY: {
      const auto& codes = as.operator()<arrow::DictionaryArray>();
      return value_at(*codes.dictionary(), codes.GetValueIndex(row));
    }
    case STRUCT:
      return struct_at(as.operator()<arrow::StructArray>(), row);
    case EXTENSION:
      return extension_at(as.operator()<arrow::ExtensionArray>(), row);
    case MAP:
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
    for (const auto& [name, value] : rows[number]) add_entry(columns, name, value, number, rows.size());
  }
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const ColumnOfRows& column : columns) {
    arrays.push_back(to_array(column));
    fields.push_back(arrow::field(column.name, arrays.back()->type()));
  }
  return Batch(arrow::RecordBatch::Make(arrow::schema(std::move(fields)), std::ssize(rows), std::move(arrays)));
}

}  // namespace cadre::data
