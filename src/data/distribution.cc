#include "data/distribution.h"

#include <arrow/array.h>
#include <arrow/array/util.h>
#include <arrow/builder.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <arrow/util/byte_size.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/arrow_status.h"

namespace cadre::data {
namespace {

bool is_nan(const arrow::Array& values, std::int64_t row) {
  if (values.type_id() == arrow::Type::DOUBLE)
    return std::isnan(static_cast<const arrow::DoubleArray&>(values).Value(row));
  if (values.type_id() == arrow::Type::FLOAT)
    return std::isnan(static_cast<const arrow::FloatArray&>(values).Value(row));
  return false;
}

}  // namespace

void Quantiles::add(std::uint32_t group, double value) {
  if (group >= values_.size()) values_.resize(group + 1);
  values_[group].push_back(value);
  held_bytes_ += static_cast<std::int64_t>(sizeof value);
}

std::optional<double> Quantiles::quantile(std::uint32_t group, double q) const {
  if (group < settled_.size() && settled_[group]) return settled_[group];
  if (group >= values_.size() || values_[group].empty()) return std::nullopt;
  std::vector<double> values = values_[group];
  if (std::ranges::any_of(values, [](double value) { return std::isnan(value); }))
    return std::numeric_limits<double>::quiet_NaN();
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(below);
  std::ranges::nth_element(values, middle);
  const double low = *middle;
  if (below + 1 == values.size()) return low;
  const double high = *std::min_element(middle + 1, values.end());
  const double part = place - static_cast<double>(below);
  if (low == high) return low;  // also where both are infinite
  // As numpy: from the nearer end, so that the result does not pass it.
  return part < 0.5 ? low + (high - low) * part : high - (high - low) * (1 - part);
}

namespace {

constexpr const char* kReleasing = "cannot put values of groups on disk";

Block rows_of_groups(std::shared_ptr<arrow::Array> groups, std::shared_ptr<arrow::Array> values) {
  const auto schema = arrow::schema({arrow::field("group", arrow::uint32()), arrow::field("value", values->type())});
  const std::int64_t rows = groups->length();
  return arrow::RecordBatch::Make(schema, rows, {std::move(groups), std::move(values)});
}

}  // namespace

Block Quantiles::release() {
  if (held_bytes_ == 0) return nullptr;
  arrow::UInt32Builder groups;
  arrow::DoubleBuilder values;
  for (std::size_t group = 0; group < values_.size(); ++group) {
    for (std::size_t i = 0; i < values_[group].size(); ++i)
      check(groups.Append(static_cast<std::uint32_t>(group)), kReleasing);
    check(values.AppendValues(values_[group]), kReleasing);
    values_[group] = {};
  }
  held_bytes_ = 0;
  return rows_of_groups(checked(groups.Finish(), kReleasing), checked(values.Finish(), kReleasing));
}

void Quantiles::add(const Block& released) {
  const auto& groups = static_cast<const arrow::UInt32Array&>(*released->column(0));
  const auto& values = static_cast<const arrow::DoubleArray&>(*released->column(1));
  for (std::int64_t row = 0; row < groups.length(); ++row) add(groups.Value(row), values.Value(row));
}

void Quantiles::settle(double q) {
  settled_.resize(std::max(settled_.size(), values_.size()));
  for (std::size_t group = 0; group < values_.size(); ++group) {
    if (values_[group].empty()) continue;
    settled_[group] = quantile(static_cast<std::uint32_t>(group), q);
    values_[group] = {};
  }
  held_bytes_ = 0;
}

Block DistinctCounts::release() {
  if (keys_ == nullptr || keys_->count() == 0) return nullptr;
  arrow::ArrayVector columns = keys_->keys();
  keys_.reset();
  counts_.clear();
  held_bytes_ = 0;
  return rows_of_groups(std::move(columns[0]), std::move(columns[1]));
}

void DistinctCounts::add(const Block& released, bool ignore_nan) {
  add(released->column(1), static_cast<const arrow::UInt32Array*>(released->column(0).get()), ignore_nan);
}

void DistinctCounts::settle() {
  settled_.resize(std::max(settled_.size(), counts_.size()));
  for (std::size_t group = 0; group < counts_.size(); ++group) settled_[group] += counts_[group];
  counts_.clear();
  keys_.reset();
  held_bytes_ = 0;
}

void DistinctCounts::add(const std::shared_ptr<arrow::Array>& values, const arrow::UInt32Array* groups,
                         bool ignore_nan) {
  if (keys_ == nullptr)
    keys_ = std::make_unique<KeyNumbers>(
        arrow::FieldVector{arrow::field("group", arrow::uint32()), arrow::field("value", values->type())});
  constexpr std::int64_t kBytesOfKey = 48;  // in a hash table
  const auto owners = groups != nullptr ? arrow::MakeArray(groups->data())
                                        : checked(arrow::MakeArrayFromScalar(arrow::UInt32Scalar(0), values->length()),
                                                  "cannot count different values");
  const std::int64_t before = keys_->count();
  std::int64_t next = before;
  const auto numbers = keys_->add({owners, values});
  for (std::int64_t row = 0; row < values->length(); ++row) {
    if (numbers->Value(row) != next) continue;  // not the first one
    ++next;
    if (values->IsNull(row) || (ignore_nan && is_nan(*values, row))) continue;
    const std::uint32_t group = groups != nullptr ? groups->Value(row) : 0;
    if (group >= counts_.size()) counts_.resize(group + 1);
    ++counts_[group];
  }
  const std::int64_t bytes = arrow::util::ReferencedBufferSize(*values).ValueOr(values->length());
  held_bytes_ += (next - before) * (kBytesOfKey + bytes / std::max<std::int64_t>(values->length(), 1));
}

}  // namespace cadre::data
