#include "cadre/data/batch.h"

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/builder.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <type_traits>

#include "data/arrow_status.h"
#include "data/owned_buffer.h"
#include "data/row_values.h"
#include "data/tensor_columns.h"

namespace cadre::data {
namespace {

template <class T>
using ArrayOf = arrow::NumericArray<typename arrow::CTypeTraits<T>::ArrowType>;

[[noreturn]] void nulls_in(std::string_view column) {
  throw InvalidArgument(
      fmt::format("column \"{}\" has nulls, which have no number or text: filter them out (!is_null(column(\"{}\"))), "
                  "or ask is_null",
                  column, column));
}

[[noreturn]] void wrong_type(std::string_view column, const arrow::Array& array, std::string_view wanted) {
  throw InvalidArgument(fmt::format("column \"{}\" is of {}, not of {}", column, array.type()->ToString(), wanted));
}

template <class T>
std::string type_name() {
  return arrow::CTypeTraits<T>::type_singleton()->ToString();
}

template <class From, class To>
std::vector<To> convert(std::string_view column, const From* begin, std::int64_t count) {
  std::vector<To> converted;
  converted.reserve(static_cast<std::size_t>(count));
  for (const From* value = begin; value != begin + count; ++value) {
    if constexpr (std::is_integral_v<To> && std::is_integral_v<From>) {
      if (!std::in_range<To>(*value))
        throw InvalidArgument(fmt::format("column \"{}\": {} does not fit {}", column, *value, type_name<To>()));
    } else if constexpr (std::is_integral_v<To>) {
      const double low = std::ldexp(std::is_signed_v<To> ? -1.0 : 0.0, std::numeric_limits<To>::digits);
      const double high = std::ldexp(1.0, std::numeric_limits<To>::digits);
      if (!(std::trunc(*value) == *value && *value >= low && *value < high))
        throw InvalidArgument(fmt::format("column \"{}\": {} does not fit {}", column, *value, type_name<To>()));
    }
    converted.push_back(static_cast<To>(*value));
  }
  return converted;
}

// Calls `use` with a pointer to the numbers; returns false if the array has none.
template <class Use>
bool visit_numbers(const arrow::Array& array, Use use) {
  const auto try_one = [&]<class T>(std::type_identity<T>) {
    if (array.type_id() != arrow::CTypeTraits<T>::ArrowType::type_id) return false;
    use(static_cast<const ArrayOf<T>&>(array).raw_values());
    return true;
  };
  return [&]<class... T>(std::type_identity<T>... types) {
    return (try_one(types) || ...);
  }(std::type_identity<std::int8_t>(), std::type_identity<std::int16_t>(), std::type_identity<std::int32_t>(),
         std::type_identity<std::int64_t>(), std::type_identity<std::uint8_t>(), std::type_identity<std::uint16_t>(),
         std::type_identity<std::uint32_t>(), std::type_identity<std::uint64_t>(), std::type_identity<float>(),
         std::type_identity<double>());
}

FlatColumn flat_column(const arrow::RecordBatch& batch, int index) {
  return flatten(*batch.schema()->field(index), batch.column(index));
}

std::shared_ptr<arrow::RecordBatch> make_batch(const std::vector<std::pair<std::string, Column>>& columns) {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  bool equally_long = true;
  for (const auto& [name, column] : columns) {
    if (std::ranges::find(fields, name, [](const auto& field) { return field->name(); }) != fields.end())
      throw InvalidArgument(fmt::format("a batch has one column \"{}\", not two", name));
    fields.push_back(arrow::field(name, column.arrow()->type()));
    arrays.push_back(column.arrow());
    equally_long &= column.size() == columns.front().second.size();
  }
  if (!equally_long) {
    std::string lengths;
    for (const auto& [name, column] : columns)
      lengths += fmt::format("{}\"{}\" has {}", lengths.empty() ? "" : ", ", name, column.size());
    throw InvalidArgument("the columns of a batch have equally many rows, but " + lengths);
  }
  const std::int64_t rows = columns.empty() ? 0 : columns.front().second.size();
  return arrow::RecordBatch::Make(arrow::schema(std::move(fields)), rows, std::move(arrays));
}

void require_different_names(const arrow::Schema& schema) {
  std::vector<std::string> names = schema.field_names();
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end())
    throw InvalidArgument(fmt::format("the columns of a batch have different names, but two are \"{}\"", *twice));
}

}  // namespace

// ---- Column

Column::Column(const std::vector<bool>& values) {
  arrow::BooleanBuilder builder;
  check(builder.AppendValues(values), "cannot make a column");
  array_ = checked(builder.Finish(), "cannot make a column");
}

Column::Column(const std::vector<std::string>& values) {
  arrow::StringBuilder builder;
  check(builder.AppendValues(values), "cannot make a column");
  array_ = checked(builder.Finish(), "cannot make a column");
}

Column::Column(std::shared_ptr<arrow::Array> array) : array_(std::move(array)) {
  if (array_ == nullptr) throw InvalidArgument("a column cannot be made from a null pointer");
}

std::int64_t Column::size() const { return array_->length(); }

template <class T>
std::shared_ptr<arrow::Array> Column::make(std::vector<T> values) {
  const auto length = std::ssize(values);
  return std::make_shared<ArrayOf<T>>(length, arrow::Buffer::FromVector(std::move(values)));
}

template <class T>
Column Column::make_view(std::span<const T> values, std::shared_ptr<const void> owner,
                         const std::vector<std::int64_t>& row_shape) {
  auto buffer = std::make_shared<OwnedBuffer>(std::move(owner), std::as_bytes(values));
  return Column(reshape(std::make_shared<ArrayOf<T>>(std::ssize(values), std::move(buffer)), row_shape));
}

std::shared_ptr<arrow::Array> Column::reshape(std::shared_ptr<arrow::Array> values,
                                              const std::vector<std::int64_t>& row_shape) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (row_shape.empty()) return values;
  std::int64_t count = 1;  // values per row
  for (const std::int64_t width : row_shape) count = width < 1 || width > kMost / count ? kMost + 1 : count * width;
  if (count > kMost || values->length() % count != 0)
    throw InvalidArgument(fmt::format("{} values cannot be rows of {}", values->length(), fmt::join(row_shape, " x ")));
  return make_tensors(values, row_shape);
}

// ---- Batch

Batch::Batch() : batch_(make_batch({})) {}

Batch::Batch(std::initializer_list<std::pair<std::string, Column>> columns)
    : batch_(make_batch(std::vector<std::pair<std::string, Column>>(columns))) {}

Batch::Batch(std::vector<std::pair<std::string, Column>> columns) : batch_(make_batch(columns)) {}

Batch::Batch(std::shared_ptr<arrow::RecordBatch> batch) : batch_(std::move(batch)) {
  if (batch_ == nullptr) throw InvalidArgument("a batch cannot be made from a null pointer");
  require_different_names(*batch_->schema());
}

std::int64_t Batch::num_rows() const { return batch_->num_rows(); }

std::vector<std::string> Batch::columns() const { return batch_->schema()->field_names(); }

bool Batch::has(std::string_view column) const { return batch_->schema()->GetFieldIndex(std::string(column)) >= 0; }

int Batch::index_of(std::string_view column) const {
  const int index = batch_->schema()->GetFieldIndex(std::string(column));
  if (index < 0)
    throw InvalidArgument(
        fmt::format("there is no column \"{}\"; the columns are: {}", column, fmt::join(columns(), ", ")));
  return index;
}

std::string Batch::type(std::string_view column) const { return batch_->column(index_of(column))->type()->ToString(); }

std::string Batch::number_type(std::string_view column) const {
  return flat_column(*batch_, index_of(column)).values->type()->ToString();
}

std::int64_t Batch::null_count(std::string_view column) const { return batch_->column(index_of(column))->null_count(); }

bool Batch::is_null(std::string_view column, std::int64_t row) const {
  const auto array = batch_->column(index_of(column));
  if (row < 0 || row >= num_rows())
    throw InvalidArgument(fmt::format("there is no row {}: the batch has {}", row, num_rows()));
  return array->IsNull(row);
}

std::vector<std::int64_t> Batch::row_shape(std::string_view column) const {
  return flat_column(*batch_, index_of(column)).row_shape;
}

template <class T>
std::span<const T> Batch::numbers_in_place(std::string_view column) const {
  const auto array = batch_->column(index_of(column));
  if (has_nulls(*array)) nulls_in(column);
  const FlatColumn flat = flat_column(*batch_, index_of(column));
  if (flat.values->type_id() != arrow::CTypeTraits<T>::ArrowType::type_id) wrong_type(column, *array, type_name<T>());
  return {static_cast<const ArrayOf<T>&>(*flat.values).raw_values(), static_cast<std::size_t>(flat.values->length())};
}

template <class T>
std::vector<T> Batch::converted_numbers(std::string_view column) const {
  const auto array = batch_->column(index_of(column));
  if (has_nulls(*array)) nulls_in(column);
  const FlatColumn flat = flat_column(*batch_, index_of(column));
  std::vector<T> converted;
  if (flat.values->type_id() == arrow::Type::BOOL) {
    const auto& bools = static_cast<const arrow::BooleanArray&>(*flat.values);
    for (std::int64_t i = 0; i < bools.length(); ++i) converted.push_back(bools.Value(i) ? T{1} : T{0});
    return converted;
  }
  const bool are_numbers = visit_numbers(*flat.values, [&](const auto* numbers) {
    using From = std::remove_cvref_t<decltype(*numbers)>;
    converted = convert<From, T>(column, numbers, flat.values->length());
  });
  if (!are_numbers) wrong_type(column, *array, "numbers");
  return converted;
}

std::vector<std::string_view> Batch::texts(std::string_view column) const {
  const auto array = batch_->column(index_of(column));
  if (has_nulls(*array)) nulls_in(column);
  std::vector<std::string_view> texts;
  texts.reserve(static_cast<std::size_t>(array->length()));
  if (arrow::is_base_binary_like(array->type_id())) {
    const bool large = arrow::is_large_binary_like(array->type_id());
    for (std::int64_t i = 0; i < array->length(); ++i)
      texts.push_back(large ? static_cast<const arrow::LargeBinaryArray&>(*array).GetView(i)
                            : static_cast<const arrow::BinaryArray&>(*array).GetView(i));
    return texts;
  }
  wrong_type(column, *array, "texts");
}

Value Batch::value(std::string_view column, std::int64_t row) const {
  return is_null(column, row) ? Value() : value_at(*batch_->column(index_of(column)), row);
}

Row Batch::row(std::int64_t row) const {
  if (row < 0 || row >= num_rows())
    throw InvalidArgument(fmt::format("there is no row {}: the batch has {}", row, num_rows()));
  return row_at(*batch_, row);
}

std::vector<Row> Batch::rows() const {
  std::vector<Row> rows;
  for (std::int64_t row = 0; row < num_rows(); ++row) rows.push_back(row_at(*batch_, row));
  return rows;
}

Batch Batch::with(std::string_view name, const Column& column) const {
  if (batch_->num_columns() == 0 && num_rows() == 0) return Batch{{std::string(name), column}};
  if (column.size() != num_rows())
    throw InvalidArgument(fmt::format("column \"{}\" has {} rows and the batch {}", name, column.size(), num_rows()));
  const int index = batch_->schema()->GetFieldIndex(std::string(name));
  const auto field = arrow::field(std::string(name), column.arrow()->type());
  return Batch(index < 0
                   ? checked(batch_->AddColumn(batch_->num_columns(), field, column.arrow()), "cannot add a column")
                   : checked(batch_->SetColumn(index, field, column.arrow()), "cannot replace a column"));
}

Batch Batch::select(std::span<const std::string> columns) const {
  std::vector<int> indices;
  for (const std::string& column : columns) indices.push_back(index_of(column));
  return Batch(checked(batch_->SelectColumns(indices), "cannot select columns"));
}

Batch Batch::slice(std::int64_t begin, std::int64_t count) const {
  const std::int64_t from = std::clamp<std::int64_t>(begin, 0, num_rows());
  return Batch(batch_->Slice(from, std::clamp<std::int64_t>(count, 0, num_rows() - from)));
}

bool operator==(const Batch& a, const Batch& b) {
  return a.batch_->Equals(*b.batch_, false, arrow::EqualOptions::Defaults().nans_equal(true));
}

#define CADRE_INSTANTIATE(T)                                                            \
  template std::shared_ptr<arrow::Array> Column::make<T>(std::vector<T>);               \
  template Column Column::make_view<T>(std::span<const T>, std::shared_ptr<const void>, \
                                       const std::vector<std::int64_t>&);               \
  template std::span<const T> Batch::numbers_in_place<T>(std::string_view) const;       \
  template std::vector<T> Batch::converted_numbers<T>(std::string_view) const;
CADRE_INSTANTIATE(std::int8_t)
CADRE_INSTANTIATE(std::int16_t)
CADRE_INSTANTIATE(std::int32_t)
CADRE_INSTANTIATE(std::int64_t)
CADRE_INSTANTIATE(std::uint8_t)
CADRE_INSTANTIATE(std::uint16_t)
CADRE_INSTANTIATE(std::uint32_t)
CADRE_INSTANTIATE(std::uint64_t)
CADRE_INSTANTIATE(float)
CADRE_INSTANTIATE(double)
#undef CADRE_INSTANTIATE

}  // namespace cadre::data
