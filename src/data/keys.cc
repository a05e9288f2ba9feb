#include "data/keys.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/compute/api.h>
#include <arrow/compute/row/grouper.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "base/checksum.h"
#include "data/arrow_status.h"
#include "data/compute.h"
#include "data/source.h"

namespace cadre::data {
namespace {

constexpr const char* kNumbering = "cannot compare keys";
constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

bool is_key_type(arrow::Type::type type) {
  if (type == arrow::Type::NA || type == arrow::Type::FIXED_SIZE_BINARY) return true;
  return (arrow::is_primitive(type) && !arrow::is_interval(type)) || arrow::is_base_binary_like(type) ||
         arrow::is_decimal(type);
}

// Returns floats in which all NaN and both zeros have the same bits, as Arrow compares keys by their bits.
template <class Array>
std::shared_ptr<arrow::Array> floats_with_equal_bits(const std::shared_ptr<arrow::Array>& values) {
  using Number = typename Array::value_type;
  const auto& numbers = static_cast<const Array&>(*values);
  const std::span<const Number> all(numbers.raw_values(), static_cast<std::size_t>(numbers.length()));
  if (std::ranges::none_of(all, [](Number number) { return std::isnan(number) || number == 0; })) return values;
  const std::int64_t lead = numbers.offset() % 8;  // so that the bits of the validity stay where they are
  std::vector<Number> canonical(static_cast<std::size_t>(lead));
  canonical.reserve(canonical.size() + all.size());
  for (const Number number : all)
    canonical.push_back(std::isnan(number) ? std::numeric_limits<Number>::quiet_NaN() : number + Number{0});
  auto validity = numbers.null_bitmap();
  if (validity != nullptr) validity = arrow::SliceBuffer(validity, numbers.offset() / 8);
  return std::make_shared<Array>(numbers.length(), arrow::Buffer::FromVector(std::move(canonical)), std::move(validity),
                                 arrow::kUnknownNullCount, lead);
}

arrow::compute::ExecBatch to_batch_of(const arrow::ArrayVector& keys) {
  const arrow::ArrayVector columns = with_equal_bits(keys);
  return {std::vector<arrow::Datum>(columns.begin(), columns.end()), keys.front()->length()};
}

}  // namespace

arrow::ArrayVector with_equal_bits(const arrow::ArrayVector& keys) {
  arrow::ArrayVector columns;
  for (const auto& key : keys) {
    if (key->type_id() == arrow::Type::FLOAT) {
      columns.push_back(floats_with_equal_bits<arrow::FloatArray>(key));
    } else if (key->type_id() == arrow::Type::DOUBLE) {
      columns.push_back(floats_with_equal_bits<arrow::DoubleArray>(key));
    } else {
      columns.push_back(key);
    }
  }
  return columns;
}

std::shared_ptr<arrow::DataType> key_type(const std::shared_ptr<arrow::DataType>& type) {
  if (type->id() == arrow::Type::DICTIONARY) return static_cast<const arrow::DictionaryType&>(*type).value_type();
  return type->id() == arrow::Type::HALF_FLOAT ? arrow::float32() : type;
}

void require_keys(const arrow::Schema& schema, const Names& columns, const std::string& what) {
  require_columns(schema, columns, what);
  for (const std::string& column : columns) {
    const auto type = schema.GetFieldByName(column)->type();
    if (!is_key_type(key_type(type)->id()))
      throw InvalidArgument(
          fmt::format("{} cannot compare the values of the column \"{}\", which is of {}: keys are numbers, truth "
                      "values, texts, bytes, dates, times and decimals",
                      what, column, type->ToString()));
  }
}

arrow::ArrayVector key_columns(const Block& block, const Names& columns) {
  initialise_compute();
  arrow::ArrayVector keys;
  for (const std::string& column : columns) {
    auto values = block->GetColumnByName(column);
    const auto type = key_type(values->type());
    keys.push_back(type == values->type() ? values : checked(arrow::compute::Cast(*values, type), kNumbering));
  }
  return keys;
}

namespace {

std::uint64_t combine(std::uint64_t hash, std::uint64_t value) {
  const std::array<std::uint64_t, 2> both = {hash, value};
  return base::checksum_of({reinterpret_cast<const char*>(both.data()), sizeof both});
}

// Combines the hash of each row with that of its value; `value_bytes(row)` returns its bytes.
template <class BytesOf>
void add_hashes(std::vector<std::uint64_t>& hashes, const arrow::Array& values, const BytesOf& value_bytes) {
  constexpr std::uint64_t kHashOfNull = 1;
  for (std::int64_t row = 0; row < values.length(); ++row) {
    std::uint64_t& hash = hashes[static_cast<std::size_t>(row)];
    hash = combine(hash, values.IsNull(row) ? kHashOfNull : base::checksum_of(value_bytes(row)));
  }
}

void add_hashes_of_column(std::vector<std::uint64_t>& hashes, const arrow::Array& values) {
  const auto add_texts = [&]<class Array>(const Array& texts) {
    add_hashes(hashes, values, [&](std::int64_t row) -> std::string_view { return texts.GetView(row); });
  };
  switch (values.type_id()) {
    case arrow::Type::NA:
      return add_hashes(hashes, values, [](std::int64_t) { return std::string_view(); });
    case arrow::Type::BOOL: {
      const auto& truths = static_cast<const arrow::BooleanArray&>(values);
      return add_hashes(hashes, values,
                        [&](std::int64_t row) -> std::string_view { return truths.Value(row) ? "1" : "0"; });
    }
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      return add_texts(static_cast<const arrow::BinaryArray&>(values));
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      return add_texts(static_cast<const arrow::LargeBinaryArray&>(values));
    default:
      break;
  }
  const auto width = static_cast<std::size_t>(static_cast<const arrow::FixedWidthType&>(*values.type()).byte_width());
  const auto* const bytes = reinterpret_cast<const char*>(values.data()->buffers[1]->data());
  add_hashes(hashes, values, [&](std::int64_t row) -> std::string_view {
    return {bytes + static_cast<std::size_t>(values.offset() + row) * width, width};
  });
}

}  // namespace

std::vector<std::uint64_t> hash_keys(const arrow::ArrayVector& keys, std::uint64_t seed) {
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(keys.front()->length()), seed);
  for (const arrow::Datum& column : to_batch_of(keys).values) add_hashes_of_column(hashes, *column.make_array());
  return hashes;
}

KeyNumbers::KeyNumbers(const arrow::FieldVector& fields) {
  initialise_compute();
  std::vector<arrow::TypeHolder> types;
  for (const auto& field : fields) types.emplace_back(key_type(field->type()));
  grouper_ = checked(arrow::compute::Grouper::Make(types), kNumbering);
}

KeyNumbers::~KeyNumbers() = default;

std::shared_ptr<arrow::UInt32Array> KeyNumbers::add(const arrow::ArrayVector& keys) {
  const auto batch = to_batch_of(keys);
  const auto found = checked(grouper_->Consume(arrow::compute::ExecSpan(batch)), kNumbering).make_array();
  const auto& of_arrow = static_cast<const arrow::UInt32Array&>(*found);
  numbers_.resize(grouper_->num_groups(), kNone);
  std::vector<std::uint32_t> numbers;
  numbers.reserve(static_cast<std::size_t>(of_arrow.length()));
  for (std::int64_t row = 0; row < of_arrow.length(); ++row) {
    std::uint32_t& number = numbers_[of_arrow.Value(row)];
    if (number == kNone) {
      number = static_cast<std::uint32_t>(arrows_.size());
      arrows_.push_back(of_arrow.Value(row));
    }
    numbers.push_back(number);
  }
  return std::make_shared<arrow::UInt32Array>(of_arrow.length(), arrow::Buffer::FromVector(std::move(numbers)));
}

std::shared_ptr<arrow::UInt32Array> KeyNumbers::find(const arrow::ArrayVector& keys) const {
  const auto batch = to_batch_of(keys);
  const auto found = checked(grouper_->Lookup(arrow::compute::ExecSpan(batch)), kNumbering).make_array();
  const auto& of_arrow = static_cast<const arrow::UInt32Array&>(*found);
  arrow::UInt32Builder numbers;
  check(numbers.Reserve(of_arrow.length()), kNumbering);
  for (std::int64_t row = 0; row < of_arrow.length(); ++row) {
    if (of_arrow.IsNull(row)) {
      numbers.UnsafeAppendNull();
    } else {
      numbers.UnsafeAppend(numbers_[of_arrow.Value(row)]);
    }
  }
  std::shared_ptr<arrow::UInt32Array> all;
  check(numbers.Finish(&all), kNumbering);
  return all;
}

std::int64_t KeyNumbers::count() const { return std::ssize(arrows_); }

arrow::ArrayVector KeyNumbers::keys() const {
  const auto unique = checked(grouper_->GetUniques(), kNumbering);
  const auto order = std::make_shared<arrow::Int64Array>(count(), arrow::Buffer::Wrap(arrows_));
  arrow::ArrayVector keys;
  for (const arrow::Datum& column : unique.values)
    keys.push_back(checked(arrow::compute::Take(*column.make_array(), *order), kNumbering));
  return keys;
}

}  // namespace cadre::data
