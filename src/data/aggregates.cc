#include "data/aggregates.h"

#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/array/util.h>
#include <arrow/compute/api.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "data/arrow_status.h"
#include "data/compute.h"
#include "data/row_values.h"

namespace cadre::data {
namespace {

// Calls `use` with each value that is not null; returns false if the array has no numbers.
template <class Use>
bool for_each_number(const arrow::Array& array, Use use) {
  const auto visit = [&]<class Array>(const Array& typed) {
    for (std::int64_t i = 0; i < typed.length(); ++i) {
      if (!typed.IsNull(i)) use(typed.Value(i));
    }
    return true;
  };
  using enum arrow::Type::type;
  switch (array.type_id()) {
    case BOOL:
      return visit(static_cast<const arrow::BooleanArray&>(array));
    case INT8:
      return visit(static_cast<const arrow::Int8Array&>(array));
    case INT16:
      return visit(static_cast<const arrow::Int16Array&>(array));
    case INT32:
      return visit(static_cast<const arrow::Int32Array&>(array));
    case INT64:
      return visit(static_cast<const arrow::Int64Array&>(array));
    case UINT8:
      return visit(static_cast<const arrow::UInt8Array&>(array));
    case UINT16:
      return visit(static_cast<const arrow::UInt16Array&>(array));
    case UINT32:
      return visit(static_cast<const arrow::UInt32Array&>(array));
    case UINT64:
      return visit(static_cast<const arrow::UInt64Array&>(array));
    case FLOAT:
      return visit(static_cast<const arrow::FloatArray&>(array));
    case DOUBLE:
      return visit(static_cast<const arrow::DoubleArray&>(array));
    default:
      return array.type_id() == NA;
  }
}

template <class Use>
bool for_each_text(const arrow::Array& array, Use use) {
  const auto visit = [&]<class Array>(const Array& typed) {
    for (std::int64_t i = 0; i < typed.length(); ++i) {
      if (!typed.IsNull(i)) use(std::string(typed.GetView(i)));
    }
    return true;
  };
  if (array.type_id() == arrow::Type::STRING) return visit(static_cast<const arrow::StringArray&>(array));
  if (array.type_id() == arrow::Type::LARGE_STRING) return visit(static_cast<const arrow::LargeStringArray&>(array));
  return false;
}

bool is_less(const Value& a, const Value& b) {
  if (a.is_string()) return a.get<std::string>() < b.get<std::string>();
  if (a.is_bool()) return !a.get<bool>() && b.get<bool>();
  if (a.is_integer() && b.is_integer()) return a.get<std::int64_t>() < b.get<std::int64_t>();
  return a.get<double>() < b.get<double>();
}

// Returns true for types that Arrow can order and Values cannot.
bool has_order(const arrow::DataType& type) { return arrow::is_temporal(type.id()) || arrow::is_decimal(type.id()); }

std::shared_ptr<arrow::Array> cast(const arrow::Array& values, const std::shared_ptr<arrow::DataType>& type) {
  initialise_compute();
  return checked(arrow::compute::Cast(values, type), "cannot compute an aggregate");
}

// Returns the values in a type of numbers or texts; null: no conversion is needed.
std::shared_ptr<arrow::Array> as_plain(const arrow::Array& values, Aggregate::Kind kind) {
  using Kind = Aggregate::Kind;
  const arrow::Type::type type = values.type_id();
  if (type == arrow::Type::HALF_FLOAT) return cast(values, arrow::float32());
  if (kind == Kind::count) return nullptr;
  if (type == arrow::Type::DICTIONARY)
    return cast(values, static_cast<const arrow::DictionaryType&>(*values.type()).value_type());
  if (arrow::is_decimal(type) && kind != Kind::min && kind != Kind::max) return cast(values, arrow::float64());
  return nullptr;
}

}  // namespace

void Aggregation::add(const arrow::Array& values) {
  using Kind = Aggregate::Kind;
  if (const auto plain = as_plain(values, aggregate_.kind)) return add(*plain);
  has_nulls_ |= values.null_count() > 0;
  const auto add_number = [&](auto value) {
    using T = decltype(value);
    if constexpr (std::is_same_v<T, bool>) {
      if (aggregate_.kind == Kind::min || aggregate_.kind == Kind::max) return add_extreme(Value(value));
      add_integer(value ? 1 : 0);
    } else if constexpr (std::is_floating_point_v<T>) {
      has_doubles_ = true;
      add_double(static_cast<double>(value));
    } else if constexpr (std::is_unsigned_v<T>) {
      add_unsigned(value);
    } else {
      add_integer(value);
    }
  };
  const bool takes_texts = aggregate_.kind == Kind::min || aggregate_.kind == Kind::max;
  if (arrow::is_floating(values.type_id())) has_doubles_ = true;
  if (for_each_number(values, add_number)) return;
  if (aggregate_.kind == Kind::count) {
    count_ += values.length() - values.null_count();
    return;
  }
  if (takes_texts && for_each_text(values, [&](std::string text) { add_extreme(Value(std::move(text))); })) return;
  if (takes_texts && has_order(*values.type())) return add_extreme_of(values);
  throw InvalidArgument(fmt::format("{} cannot be computed: the column is of {}, which is no type of {}",
                                    to_string(aggregate_), values.type()->ToString(),
                                    takes_texts ? "numbers, texts, dates or times" : "numbers"));
}

void Aggregation::add_integer(std::int64_t value) {
  integer_sum_ += value;
  if (aggregate_.kind == Aggregate::Kind::min || aggregate_.kind == Aggregate::Kind::max) return add_extreme(value);
  add_sample(static_cast<double>(value));
}

void Aggregation::add_unsigned(std::uint64_t value) {
  if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return add_integer(static_cast<std::int64_t>(value));
  integer_sum_ += value;
  if (aggregate_.kind == Aggregate::Kind::min || aggregate_.kind == Aggregate::Kind::max)
    return add_extreme(static_cast<double>(value));
  add_sample(static_cast<double>(value));
}

void Aggregation::add_double(double value) {
  if (std::isnan(value) && options_.ignore_nan) return;
  if (aggregate_.kind == Aggregate::Kind::min || aggregate_.kind == Aggregate::Kind::max) {
    if (!std::isnan(value)) return add_extreme(value);
    ++count_;  // if all values are NaN, so is the extreme
    return;
  }
  // Neumaier's summation: the result hardly depends on the order of the values.
  const double sum = sum_ + value;
  if (std::isfinite(sum))
    compensation_ += std::abs(sum_) >= std::abs(value) ? (sum_ - sum) + value : (value - sum) + sum_;
  sum_ = sum;
  add_sample(value);
}

// Welford's algorithm for the mean and the sum of squares.
void Aggregation::add_sample(double value) {
  ++count_;
  const double difference = value - mean_;
  mean_ += difference / static_cast<double>(count_);
  squares_ += difference * (value - mean_);
}

void Aggregation::add_extreme(Value value) {
  ++count_;
  const bool is_min = aggregate_.kind == Aggregate::Kind::min;
  if (!extreme_ || (is_min ? is_less(value, *extreme_) : is_less(*extreme_, value))) extreme_ = std::move(value);
}

void Aggregation::add_extreme_of(const arrow::Array& values) {
  initialise_compute();
  const std::string doing = "cannot compute " + to_string(aggregate_);
  const auto extreme = [&](const arrow::Array& of) {
    const arrow::Datum both = checked(arrow::compute::MinMax(of.data()), doing);
    return both.scalar_as<arrow::StructScalar>().value[aggregate_.kind == Aggregate::Kind::min ? 0 : 1];
  };
  count_ += values.length() - values.null_count();
  auto found = extreme(values);
  if (!found->is_valid) return;
  if (arrow_extreme_ == nullptr) {
    arrow_extreme_ = std::move(found);
    return;
  }
  const auto one = checked(arrow::MakeArrayFromScalar(*arrow_extreme_, 1), doing);
  const auto other = checked(arrow::MakeArrayFromScalar(*found, 1), doing);
  arrow_extreme_ = extreme(*checked(arrow::Concatenate({one, other}), doing));
}

Value Aggregation::sum() const {
  if (has_doubles_) return sum_ + compensation_;
  if (integer_sum_ > std::numeric_limits<std::int64_t>::max() ||
      integer_sum_ < std::numeric_limits<std::int64_t>::min())
    throw InvalidArgument(
        fmt::format("{} does not fit 64 bits: make a column of doubles from it, and sum that", to_string(aggregate_)));
  return static_cast<std::int64_t>(integer_sum_);
}

Value Aggregation::result() const {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (has_nulls_ && !options_.ignore_nulls && aggregate_.kind != Aggregate::Kind::count) return {};
  if (aggregate_.kind == Aggregate::Kind::count) return count_;
  if (count_ == 0) return {};
  const auto count = static_cast<double>(count_);
  switch (aggregate_.kind) {
    case Aggregate::Kind::sum:
      return sum();
    case Aggregate::Kind::mean:
      return has_doubles_ ? (sum_ + compensation_) / count : static_cast<double>(integer_sum_) / count;
    case Aggregate::Kind::std:
      return count_ > options_.ddof ? std::sqrt(squares_ / (count - static_cast<double>(options_.ddof))) : kNan;
    default:
      if (arrow_extreme_ != nullptr) return to_value(*arrow_extreme_);
      return extreme_.value_or(Value(kNan));
  }
}

}  // namespace cadre::data
