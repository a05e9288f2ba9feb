#include "data/tensor_columns.h"

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/compute/api_vector.h>
#include <arrow/compute/cast.h>
#include <arrow/compute/exec.h>
#include <arrow/extension/fixed_shape_tensor.h>
#include <arrow/extension_type.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/json.h"
#include "cadre/error.h"
#include "data/arrow_status.h"
#include "data/compute.h"

namespace cadre::data {
namespace {

using arrow::extension::FixedShapeTensorType;
using Shape = std::vector<std::int64_t>;

constexpr const char* kVariableTensor = "ray.data.arrow_variable_shaped_tensor";
constexpr const char* kMakingTensors = "cannot make a column of tensors";

// A note in a file about a type that Arrow itself does not know: its name and parameters.
struct ExtensionNote {
  std::string name;
  std::string content;
};

std::optional<ExtensionNote> note_of(const arrow::Field& field) {
  if (!field.HasMetadata()) return std::nullopt;
  const auto name = field.metadata()->Get("ARROW:extension:name");
  if (!name.ok()) return std::nullopt;
  return ExtensionNote{*name, field.metadata()->Get("ARROW:extension:metadata").ValueOr("")};
}

bool is_variable_tensor(const arrow::Field& field) {
  const auto note = note_of(field);
  return note && note->name == kVariableTensor && field.type()->id() == arrow::Type::STRUCT;
}

// Returns the number of values in a tensor, limited to the largest number. Widths must not be negative.
std::int64_t count_of(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t width : shape) {
    if (__builtin_mul_overflow(count, width, &count)) return std::numeric_limits<std::int64_t>::max();
  }
  return count;
}

// Parses the shape noted by Ray; empty if there is none in JSON: older versions have pickled it.
std::optional<Shape> noted_shape(const std::string& content) {
  try {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    auto shape = base::parse_json(content, "the shape of a tensor").get<Shape>();
    std::int64_t count = 1;
    for (const std::int64_t width : shape) {
      if (width < 1 || width > kMost / count) return std::nullopt;
      count *= width;
    }
    return shape;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::shared_ptr<arrow::Field> with_type(const arrow::Field& stored, const std::shared_ptr<arrow::DataType>& value_type,
                                        const Shape& shape) {
  const auto type = FixedShapeTensorType::Make(value_type, shape);
  return type.ok() ? arrow::field(stored.name(), *type, stored.nullable()) : stored.Copy();
}

// Returns the dimensions in logical order; empty if the values are stored in that order.
std::optional<Shape> permuted_shape(const FixedShapeTensorType& tensors) {
  const Shape& order = tensors.permutation();
  if (std::ranges::is_sorted(order)) return std::nullopt;
  Shape shape;
  for (const std::int64_t dimension : order) shape.push_back(tensors.shape()[static_cast<std::size_t>(dimension)]);
  return shape;
}

// Returns the positions of one row's values in the logical order of dimensions.
std::vector<std::int64_t> value_order(const FixedShapeTensorType& tensors) {
  const Shape& stored = tensors.shape();
  Shape strides(stored.size(), 1);
  for (std::size_t i = stored.size(); i-- > 1;) strides[i - 1] = strides[i] * stored[i];
  std::vector<std::int64_t> places{0};
  for (const std::int64_t dimension : tensors.permutation()) {
    std::vector<std::int64_t> next;
    for (const std::int64_t place : places) {
      for (std::int64_t i = 0; i < stored[static_cast<std::size_t>(dimension)]; ++i)
        next.push_back(place + i * strides[static_cast<std::size_t>(dimension)]);
    }
    places = std::move(next);
  }
  return places;
}

std::shared_ptr<arrow::Array> in_order(const arrow::ExtensionArray& stored, const FixedShapeTensorType& tensors,
                                       const std::shared_ptr<arrow::DataType>& type, arrow::MemoryPool* pool,
                                       const std::string& doing) {
  const std::vector<std::int64_t> order = value_order(tensors);
  const auto storage = stored.storage()->data();
  std::vector<std::int64_t> places;
  for (std::int64_t row = 0; row < storage->offset + storage->length; ++row) {
    for (const std::int64_t place : order) places.push_back(row * std::ssize(order) + place);
  }
  const auto count = std::ssize(places);
  const arrow::Int64Array indices(count, arrow::Buffer::FromVector(std::move(places)));
  arrow::compute::ExecContext context(pool);
  const auto values = checked(arrow::compute::Take(arrow::MakeArray(storage->child_data.front()), indices.data(),
                                                   arrow::compute::TakeOptions::NoBoundsCheck(), &context),
                              doing);
  auto moved = storage->Copy();
  moved->child_data = {values.array()};
  return arrow::ExtensionType::WrapArray(type, arrow::MakeArray(moved));
}

// ---- Flat columns

struct Width {
  std::int64_t row;
  std::int64_t values;
};

[[noreturn]] void different_widths(const std::string& column, const Width& one, const Width& other) {
  throw InvalidArgument(
      fmt::format("column \"{}\" has rows of different shapes: row {} has a list of {} values, and row {} one of {}. "
                  "Make them alike with map_batches, or leave the column out with select_columns",
                  column, one.row, one.values, other.row, other.values));
}

// Returns the values in all lists of an array. An array without lists may have no offsets.
template <class ListArray>
std::shared_ptr<arrow::Array> items_of(const ListArray& lists) {
  if (lists.length() == 0) return lists.values()->Slice(0, 0);
  const std::int64_t begin = lists.value_offset(0);
  return lists.values()->Slice(begin, lists.value_offset(lists.length()) - begin);
}

std::shared_ptr<arrow::Array> items_of(const arrow::FixedSizeListArray& lists) {
  const std::int64_t width = lists.list_type()->list_size();
  return lists.values()->Slice(lists.offset() * width, lists.length() * width);
}

// Replaces lists of equal length by their values.
template <class ListArray>
void flatten_lists(const std::string& column, FlatColumn& flat) {
  const auto& lists = static_cast<const ListArray&>(*flat.values);
  const std::int64_t lists_per_row = std::max<std::int64_t>(count_of(flat.row_shape), 1);
  std::optional<Width> first;
  for (std::int64_t i = 0; i < lists.length(); ++i) {
    if (lists.IsNull(i)) continue;
    const Width width{i / lists_per_row, lists.value_length(i)};
    if (!first) first = width;
    if (first->values != width.values) different_widths(column, *first, width);
  }
  flat.row_shape.push_back(first ? first->values : 0);
  flat.values = items_of(lists);
}

void flatten_fixed_lists(FlatColumn& flat) {
  const auto& lists = static_cast<const arrow::FixedSizeListArray&>(*flat.values);
  flat.row_shape.push_back(lists.list_type()->list_size());
  flat.values = items_of(lists);
}

void flatten_bytes(FlatColumn& flat) {
  const auto& bytes = static_cast<const arrow::FixedSizeBinaryArray&>(*flat.values);
  const std::int64_t width = bytes.byte_width();
  flat.row_shape.push_back(width);
  const auto buffer = bytes.length() == 0
                          ? std::make_shared<arrow::Buffer>(nullptr, 0)
                          : arrow::SliceBuffer(bytes.values(), bytes.offset() * width, bytes.length() * width);
  flat.values = std::make_shared<arrow::UInt8Array>(bytes.length() * width, buffer);
}

void flatten_extension(const std::string& column, FlatColumn& flat) {
  const auto array = std::static_pointer_cast<arrow::ExtensionArray>(flat.values);
  const auto& type = static_cast<const arrow::ExtensionType&>(*array->type());
  flat.values = array->storage();
  if (type.extension_name() != "arrow.fixed_shape_tensor") return;
  const auto& tensors = static_cast<const FixedShapeTensorType&>(type);
  if (permuted_shape(tensors))
    throw InvalidArgument(
        fmt::format("column \"{}\" has tensors whose dimensions do not lie in memory in their order ({}): make them "
                    "contiguous where the column is made",
                    column, type.ToString()));
  flatten_fixed_lists(flat);
  flat.row_shape.pop_back();
  flat.row_shape.insert(flat.row_shape.end(), tensors.shape().begin(), tensors.shape().end());
}

// Flattens Ray's tensors of variable shape: a list of values and a list of dimensions for each row.
void flatten_variable_tensors(const std::string& column, FlatColumn& flat) {
  const auto& rows = static_cast<const arrow::StructArray&>(*flat.values);
  const auto data = rows.GetFieldByName("data");
  const auto shapes = std::dynamic_pointer_cast<arrow::ListArray>(rows.GetFieldByName("shape"));
  if (data == nullptr || shapes == nullptr || shapes->value_type()->id() != arrow::Type::INT64) return;
  if (data->type_id() != arrow::Type::LIST && data->type_id() != arrow::Type::LARGE_LIST) return;
  const auto& widths = static_cast<const arrow::Int64Array&>(*shapes->values());
  std::optional<std::pair<std::int64_t, Shape>> first;
  for (std::int64_t row = 0; row < rows.length(); ++row) {
    if (rows.IsNull(row)) continue;
    const std::int64_t* const begin = widths.raw_values() + shapes->value_offset(row);
    const Shape shape(begin, begin + shapes->value_length(row));
    if (!first) first = {row, shape};
    if (first->second != shape)
      throw InvalidArgument(
          fmt::format("column \"{}\" has rows of different shapes: row {} is of {}, and row {} of {}. Make them alike "
                      "with map_batches, or leave the column out with select_columns",
                      column, first->first, fmt::join(first->second, " x "), row, fmt::join(shape, " x ")));
  }
  flat.values = data;
  data->type_id() == arrow::Type::LARGE_LIST ? flatten_lists<arrow::LargeListArray>(column, flat)
                                             : flatten_lists<arrow::ListArray>(column, flat);
  const auto is_shape = [&](const Shape& shape) {
    return std::ranges::all_of(shape, [](std::int64_t width) { return width >= 0; }) &&
           count_of(shape) == flat.row_shape.front();
  };
  if (first && is_shape(first->second)) flat.row_shape = first->second;
}

}  // namespace

std::shared_ptr<arrow::Field> with_tensor_type(const std::shared_ptr<arrow::Field>& stored) {
  const auto& type = *stored->type();
  if (type.id() == arrow::Type::EXTENSION) {
    const auto& extension = static_cast<const arrow::ExtensionType&>(type);
    if (extension.extension_name() != "arrow.fixed_shape_tensor") return stored;
    const auto& tensors = static_cast<const FixedShapeTensorType&>(extension);
    const auto shape = permuted_shape(tensors);
    return shape ? with_type(*stored, tensors.value_type(), *shape) : stored;
  }
  if (type.id() != arrow::Type::LIST && type.id() != arrow::Type::LARGE_LIST) return stored;
  const auto note = note_of(*stored);
  if (!note || (note->name != "ray.data.arrow_tensor" && note->name != "ray.data.arrow_tensor_v2")) return stored;
  const auto shape = noted_shape(note->content);
  return shape ? with_type(*stored, static_cast<const arrow::BaseListType&>(type).value_type(), *shape) : stored;
}

std::shared_ptr<arrow::Array> to_tensor_type(const std::shared_ptr<arrow::Array>& stored,
                                             const std::shared_ptr<arrow::DataType>& type, arrow::MemoryPool* pool,
                                             const std::string& doing) {
  if (stored->type()->Equals(type) || type->id() != arrow::Type::EXTENSION) return stored;
  initialise_compute();
  if (stored->type_id() == arrow::Type::EXTENSION)
    return in_order(static_cast<const arrow::ExtensionArray&>(*stored),
                    static_cast<const FixedShapeTensorType&>(*stored->type()), type, pool, doing);
  arrow::compute::ExecContext context(pool);
  context.set_use_threads(false);
  const auto lists = checked(
      arrow::compute::Cast(
          arrow::Datum(stored),
          arrow::compute::CastOptions::Safe(static_cast<const arrow::ExtensionType&>(*type).storage_type()), &context),
      doing);
  return arrow::ExtensionType::WrapArray(type, lists.make_array());
}

std::shared_ptr<arrow::DataType> tensor_type(const std::shared_ptr<arrow::DataType>& value_type,
                                             const std::vector<std::int64_t>& row_shape) {
  return checked(FixedShapeTensorType::Make(value_type, row_shape), kMakingTensors);
}

std::shared_ptr<arrow::Array> make_tensors(const std::shared_ptr<arrow::Array>& values,
                                           const std::vector<std::int64_t>& row_shape) {
  const auto type = tensor_type(values->type(), row_shape);
  const auto lists = checked(
      arrow::FixedSizeListArray::FromArrays(values, static_cast<std::int32_t>(count_of(row_shape))), kMakingTensors);
  return arrow::ExtensionType::WrapArray(type, lists);
}

std::shared_ptr<arrow::Field> variable_tensor_field(const std::string& name,
                                                    const std::shared_ptr<arrow::DataType>& value_type,
                                                    std::size_t dimensions) {
  const auto type = arrow::struct_(
      {arrow::field("data", arrow::large_list(value_type)), arrow::field("shape", arrow::list(arrow::int64()))});
  return arrow::field(name, type, true,
                      arrow::key_value_metadata({"ARROW:extension:name", "ARROW:extension:metadata"},
                                                {kVariableTensor, fmt::to_string(dimensions)}));
}

std::shared_ptr<arrow::Array> make_variable_tensors(const arrow::Field& field,
                                                    const std::shared_ptr<arrow::Array>& values,
                                                    std::span<const std::vector<std::int64_t>> shapes) {
  std::vector<std::int64_t> value_offsets{0};
  std::vector<std::int32_t> shape_offsets{0};
  std::vector<std::int64_t> widths;
  for (const Shape& shape : shapes) {
    value_offsets.push_back(value_offsets.back() + count_of(shape));
    widths.insert(widths.end(), shape.begin(), shape.end());
    shape_offsets.push_back(static_cast<std::int32_t>(widths.size()));
  }
  const auto rows = std::ssize(shapes);
  const auto& type = static_cast<const arrow::StructType&>(*field.type());
  auto data = std::make_shared<arrow::LargeListArray>(type.field(0)->type(), rows,
                                                      arrow::Buffer::FromVector(std::move(value_offsets)), values);
  const auto width_count = std::ssize(widths);
  auto all_widths = std::make_shared<arrow::Int64Array>(width_count, arrow::Buffer::FromVector(std::move(widths)));
  auto shape = std::make_shared<arrow::ListArray>(
      type.field(1)->type(), rows, arrow::Buffer::FromVector(std::move(shape_offsets)), std::move(all_widths));
  return std::make_shared<arrow::StructArray>(field.type(), rows,
                                              arrow::ArrayVector{std::move(data), std::move(shape)});
}

FlatColumn flatten(const arrow::Field& field, const std::shared_ptr<arrow::Array>& column) {
  FlatColumn flat{column, {}};
  if (is_variable_tensor(field)) flatten_variable_tensors(field.name(), flat);
  for (;;) {
    switch (flat.values->type_id()) {
      case arrow::Type::EXTENSION:
        flatten_extension(field.name(), flat);
        break;
      case arrow::Type::FIXED_SIZE_LIST:
        flatten_fixed_lists(flat);
        break;
      case arrow::Type::LIST:
        flatten_lists<arrow::ListArray>(field.name(), flat);
        break;
      case arrow::Type::LARGE_LIST:
        flatten_lists<arrow::LargeListArray>(field.name(), flat);
        break;
      case arrow::Type::FIXED_SIZE_BINARY:
        flatten_bytes(flat);
        return flat;
      default:
        return flat;
    }
  }
}

bool has_nulls(const arrow::Array& array) {
  if (array.null_count() > 0) return true;
  switch (array.type_id()) {
    case arrow::Type::EXTENSION:
      return has_nulls(*static_cast<const arrow::ExtensionArray&>(array).storage());
    case arrow::Type::FIXED_SIZE_LIST:
      return has_nulls(*items_of(static_cast<const arrow::FixedSizeListArray&>(array)));
    case arrow::Type::LIST:
      return has_nulls(*items_of(static_cast<const arrow::ListArray&>(array)));
    case arrow::Type::LARGE_LIST:
      return has_nulls(*items_of(static_cast<const arrow::LargeListArray&>(array)));
    case arrow::Type::STRUCT: {
      const auto& rows = static_cast<const arrow::StructArray&>(array);
      return std::ranges::any_of(rows.fields(), [](const auto& field) { return has_nulls(*field); });
    }
    default:
      return false;
  }
}

}  // namespace cadre::data
