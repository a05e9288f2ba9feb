#include "data/adjacent_arrays.h"

#include <arrow/array.h>
#include <arrow/array/data.h>
#include <arrow/buffer.h>
#include <arrow/extension_type.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>
#include <arrow/util/checked_cast.h>

#include <cstdint>
#include <optional>

namespace cadre::data {
namespace {

// The values of an array, as bytes of a buffer.
struct ValueBytes {
  std::shared_ptr<arrow::Buffer> root;  // the whole buffer of which the values are a part
  const std::uint8_t* begin = nullptr;
  std::int64_t size = 0;
};

std::shared_ptr<arrow::Buffer> whole_buffer(std::shared_ptr<arrow::Buffer> buffer) {
  while (buffer->parent() != nullptr) buffer = buffer->parent();
  return buffer;
}

const arrow::DataType& storage_of(const arrow::DataType& type) {
  return type.id() == arrow::Type::EXTENSION
             ? *arrow::internal::checked_cast<const arrow::ExtensionType&>(type).storage_type()
             : type;
}

std::optional<ValueBytes> value_bytes(const arrow::ArrayData& data, std::int64_t begin, std::int64_t count) {
  if (data.GetNullCount() != 0) return std::nullopt;
  const arrow::DataType& type = storage_of(*data.type);
  if (type.id() == arrow::Type::FIXED_SIZE_LIST) {
    const std::int64_t size = arrow::internal::checked_cast<const arrow::FixedSizeListType&>(type).list_size();
    return value_bytes(*data.child_data.front(), (data.offset + begin) * size, count * size);
  }
  if (!arrow::is_primitive(type.id()) || type.bit_width() % 8 != 0 || data.buffers[1] == nullptr) return std::nullopt;
  const std::int64_t width = type.bit_width() / 8;
  return ValueBytes{.root = whole_buffer(data.buffers[1]),
                    .begin = data.buffers[1]->data() + (data.offset + begin) * width,
                    .size = count * width};
}

// Returns data like `model`, with so many rows, whose values are these bytes.
std::shared_ptr<arrow::ArrayData> like(const arrow::ArrayData& model, std::int64_t rows,
                                       const std::shared_ptr<arrow::Buffer>& bytes) {
  const arrow::DataType& type = storage_of(*model.type);
  if (type.id() != arrow::Type::FIXED_SIZE_LIST)
    return arrow::ArrayData::Make(model.type, rows, {nullptr, bytes}, /*null_count=*/0);
  const std::int64_t size = arrow::internal::checked_cast<const arrow::FixedSizeListType&>(type).list_size();
  return arrow::ArrayData::Make(model.type, rows, {nullptr}, {like(*model.child_data.front(), rows * size, bytes)},
                                /*null_count=*/0);
}

}  // namespace

std::shared_ptr<arrow::Array> join_adjacent(std::span<const std::shared_ptr<arrow::Array>> arrays) {
  const arrow::ArrayData& first = *arrays.front()->data();
  auto all = value_bytes(first, 0, first.length);
  if (!all) return nullptr;
  std::int64_t rows = first.length;
  for (const auto& array : arrays.subspan(1)) {
    const auto next = value_bytes(*array->data(), 0, array->length());
    if (!next || next->root != all->root || next->begin != all->begin + all->size) return nullptr;
    all->size += next->size;
    rows += array->length();
  }
  return arrow::MakeArray(like(first, rows, arrow::SliceBuffer(all->root, all->begin - all->root->data(), all->size)));
}

}  // namespace cadre::data
