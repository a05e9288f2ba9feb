#include "data/aggregates.h"

#include <arrow/array.h>
#include <arrow/array/util.h>
#include <arrow/builder.h>
#include <arrow/compute/api.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "data/arrow_status.h"
#include "data/compute.h"
#include "data/keys.h"
#include "data/sort.h"

namespace cadre::data {
namespace {

using Kind = Aggregate::Kind;

constexpr const char* kAggregating = "cannot compute an aggregate";
constexpr std::int64_t kLeastRowsToReduce = std::int64_t{1} << 16;

// Calls `use` with the row and value of each value that is not null.
template <class Use>
void for_each_number(const arrow::Array& array, Use use) {
  const auto visit = [&]<class Array>(const Array& typed) {
    for (std::int64_t i = 0; i < typed.length(); ++i) {
      if (!typed.IsNull(i)) use(i, typed.Value(i));
    }
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
      return;
  }
}

bool is_number(const arrow::DataType& type) {
  return arrow::is_integer(type.id()) || arrow::is_floating(type.id()) || type.id() == arrow::Type::BOOL ||
         type.id() == arrow::Type::NA;
}

bool is_float(const arrow::DataType& type) { return arrow::is_floating(type.id()); }

// Returns true for types whose extremes Arrow finds.
bool has_order(const arrow::DataType& type) {
  return arrow::is_temporal(type.id()) || arrow::is_decimal(type.id()) || arrow::is_string(type.id());
}

// Returns the type in which values of a column are aggregated.
std::shared_ptr<arrow::DataType> values_type(const Aggregate& aggregate, const arrow::DataType& type) {
  if (aggregate.kind == Kind::count && type.id() != arrow::Type::HALF_FLOAT) return type.GetSharedPtr();
  const auto plain = key_type(type.GetSharedPtr());
  const bool keeps_decimals =
      aggregate.kind == Kind::min || aggregate.kind == Kind::max || aggregate.kind == Kind::count_distinct;
  return arrow::is_decimal(plain->id()) && !keeps_decimals ? arrow::float64() : plain;
}

std::shared_ptr<arrow::Array> cast(const std::shared_ptr<arrow::Array>& values,
                                   const std::shared_ptr<arrow::DataType>& type) {
  if (values->type()->Equals(*type)) return values;
  initialise_compute();
  return checked(arrow::compute::Cast(*values, type), kAggregating);
}

std::shared_ptr<arrow::Array> nulls(std::int64_t count, const std::shared_ptr<arrow::DataType>& type) {
  return checked(arrow::MakeArrayOfNull(type, count), kAggregating);
}

}  // namespace

std::string fault_of(const Aggregate& aggregate) {
  if (aggregate.column.empty() && aggregate.kind != Kind::count)
    return fmt::format("{} needs a column", to_string(aggregate));
  if (aggregate.kind == Kind::quantile && !(aggregate.q >= 0 && aggregate.q <= 1))
    return fmt::format("{} cannot be computed: q is {}; it must be from 0 to 1", to_string(aggregate), aggregate.q);
  return "";
}

std::shared_ptr<arrow::DataType> result_type(const Aggregate& aggregate, const arrow::DataType& column) {
  if (aggregate.kind == Kind::count) return arrow::int64();
  const auto type = values_type(aggregate, column);
  const bool is_extreme = aggregate.kind == Kind::min || aggregate.kind == Kind::max;
  const bool accepts_others = is_extreme || aggregate.kind == Kind::count_distinct;
  if (!is_number(*type) && !(accepts_others && has_order(*type)))
    throw InvalidArgument(fmt::format("{} cannot be computed: the column is of {}, which is no type of {}",
                                      to_string(aggregate), column.ToString(),
                                      accepts_others ? "numbers, texts, dates or times" : "numbers"));
  if (aggregate.kind == Kind::count_distinct) return arrow::int64();
  if (is_extreme) return type;
  if (aggregate.kind == Kind::sum && !is_float(*type)) return arrow::int64();
  return arrow::float64();
}

// ---- Extremes

void Extremes::add(const std::shared_ptr<arrow::Array>& values, const arrow::UInt32Array* groups) {
  static const auto kSchema = [](const std::shared_ptr<arrow::DataType>& type) {
    return arrow::schema({arrow::field("group", arrow::uint32()), arrow::field("value", type)});
  };
  initialise_compute();
  std::shared_ptr<arrow::Array> candidates = values;
  std::shared_ptr<arrow::Array> owners;
  if (groups == nullptr) {
    const arrow::Datum both = checked(arrow::compute::MinMax(values), kAggregating);
    const auto& extreme = both.scalar_as<arrow::StructScalar>().value[greatest_ ? 1 : 0];
    candidates = checked(arrow::MakeArrayFromScalar(*extreme, 1), kAggregating);
    owners = checked(arrow::MakeArrayFromScalar(arrow::UInt32Scalar(0), 1), kAggregating);
  } else {
    owners = arrow::MakeArray(groups->data());
  }
  Block added = arrow::RecordBatch::Make(kSchema(values->type()), candidates->length(), {owners, candidates});
  if (groups != nullptr) added = best_of(added);
  rows_ += added->num_rows();
  blocks_.push_back(std::move(added));
  if (rows_ < std::max(kLeastRowsToReduce, 2 * reduced_rows_)) return;
  blocks_ = {best_of(join(blocks_, arrow::default_memory_pool()))};
  reduced_rows_ = rows_ = blocks_.front()->num_rows();
}

Block Extremes::best_of(const Block& candidates) const {
  arrow::MemoryPool* pool = arrow::default_memory_pool();
  const Block sorted = take_rows(candidates, sorted_indices(candidates, {{"group"}, {"value", greatest_}}, pool), pool);
  const auto& groups = static_cast<const arrow::UInt32Array&>(*sorted->column(0));
  arrow::BooleanBuilder is_first;
  for (std::int64_t row = 0; row < groups.length(); ++row)
    check(is_first.Append(row == 0 || groups.Value(row) != groups.Value(row - 1)), kAggregating);
  return keep_rows(sorted, checked(is_first.Finish(), kAggregating), pool);
}

std::shared_ptr<arrow::Array> Extremes::results(std::int64_t groups,
                                                const std::shared_ptr<arrow::DataType>& type) const {
  if (blocks_.empty()) return nulls(groups, type);
  blocks_ = {best_of(join(blocks_, arrow::default_memory_pool()))};
  const Block& best = blocks_.front();
  const auto& owners = static_cast<const arrow::UInt32Array&>(*best->column(0));
  std::vector<std::int64_t> places(static_cast<std::size_t>(groups), -1);
  for (std::int64_t row = 0; row < owners.length(); ++row) places[owners.Value(row)] = row;
  arrow::Int64Builder indices;
  for (const std::int64_t place : places) check(place < 0 ? indices.AppendNull() : indices.Append(place), kAggregating);
  return checked(arrow::compute::Take(*best->column(1), *checked(indices.Finish(), kAggregating)), kAggregating);
}

// ---- Aggregations

void Aggregation::add_rows(std::int64_t rows, const arrow::UInt32Array* groups, std::int64_t count) {
  values_type_ = arrow::null();
  groups_.resize(static_cast<std::size_t>(count));
  if (groups == nullptr) groups_[0].count += rows;
  for (std::int64_t row = 0; groups != nullptr && row < rows; ++row) ++groups_[groups->Value(row)].count;
}

void Aggregation::add(const std::shared_ptr<arrow::Array>& values, const arrow::UInt32Array* groups,
                      std::int64_t count) {
  result_type(aggregate_, *values->type());  // throws if there is none
  groups_.resize(static_cast<std::size_t>(count));
  const auto group_of = [&](std::int64_t row) -> Group& { return groups_[groups == nullptr ? 0 : groups->Value(row)]; };
  if (values->null_count() > 0) {
    const bool counts_nulls = aggregate_.kind == Kind::count && !options_.ignore_nulls;
    for (std::int64_t row = 0; row < values->length(); ++row) {
      if (!values->IsNull(row)) continue;
      group_of(row).has_nulls = true;
      if (counts_nulls) ++group_of(row).count;
    }
  }
  const auto type = values_type(aggregate_, *values->type());
  values_type_ = type;
  if (aggregate_.kind == Kind::count_distinct && type->id() != arrow::Type::NA)
    return distinct_.add(cast(values, type), groups, options_.ignore_nan);
  if (is_number(*type)) {
    for_each_number(*cast(values, type), [&](std::int64_t row, auto value) {
      if constexpr (std::is_floating_point_v<decltype(value)>) {
        add_double(group_of(row), value);
      } else {
        add_integer(group_of(row), value);
      }
    });
    return;
  }
  for (std::int64_t row = 0; row < values->length(); ++row) group_of(row).count += values->IsNull(row) ? 0 : 1;
  if (aggregate_.kind != Kind::count) extremes_.add(cast(values, type), groups);
}

void Aggregation::add_integer(Group& group, WideInteger value) {
  ++group.count;
  if (aggregate_.kind == Kind::quantile)
    return quantiles_.add(static_cast<std::uint32_t>(&group - groups_.data()), static_cast<double>(value));
  if (is_extreme()) {
    const bool is_better = aggregate_.kind == Kind::min ? value < group.integer : value > group.integer;
    if (!group.has_extreme || is_better) group.integer = value;
    group.has_extreme = true;
    return;
  }
  group.integer += value;
  if (aggregate_.kind != Kind::std) return;
  const double difference = static_cast<double>(value) - group.mean;
  group.mean += difference / static_cast<double>(group.count);
  group.squares += difference * (static_cast<double>(value) - group.mean);
}

void Aggregation::add_double(Group& group, double value) {
  if (std::isnan(value) && options_.ignore_nan) return;
  ++group.count;
  if (aggregate_.kind == Kind::quantile)
    return quantiles_.add(static_cast<std::uint32_t>(&group - groups_.data()), value);
  if (is_extreme()) {
    if (std::isnan(value)) return;
    const bool is_better = aggregate_.kind == Kind::min ? value < group.number : value > group.number;
    if (!group.has_extreme || is_better) group.number = value;
    group.has_extreme = true;
    return;
  }
  // Neumaier's summation: the result hardly depends on the order of the values.
  const double sum = group.number + value;
  if (std::isfinite(sum))
    group.compensation +=
        std::abs(group.number) >= std::abs(value) ? (group.number - sum) + value : (value - sum) + group.number;
  group.number = sum;
  // Welford's algorithm for the mean and the sum of squares.
  const double difference = value - group.mean;
  group.mean += difference / static_cast<double>(group.count);
  group.squares += difference * (value - group.mean);
}

bool Aggregation::is_left_out(const Group& group) const {
  return (group.has_nulls && !options_.ignore_nulls) || group.count == 0;
}

double Aggregation::mean_of(const Group& group) const {
  const double sum = is_float(*values_type_) ? group.number + group.compensation : static_cast<double>(group.integer);
  return sum / static_cast<double>(group.count);
}

Block Aggregation::release_kept() {
  return aggregate_.kind == Kind::quantile ? quantiles_.release() : distinct_.release();
}

void Aggregation::add_kept(const Block& released) {
  if (aggregate_.kind == Kind::quantile) return quantiles_.add(released);
  distinct_.add(released, options_.ignore_nan);
}

void Aggregation::settle_kept() {
  quantiles_.settle(aggregate_.q);
  distinct_.settle();
}

std::shared_ptr<arrow::Array> Aggregation::integer_results(std::int64_t count) const {
  // An extreme may need the 64th bit.
  arrow::UInt64Builder large;
  arrow::Int64Builder builder;
  const bool is_large = is_extreme() && values_type_->id() == arrow::Type::UINT64;
  for (std::int64_t i = 0; i < count; ++i) {
    const Group& group = groups_[static_cast<std::size_t>(i)];
    if (is_left_out(group)) {
      check(is_large ? large.AppendNull() : builder.AppendNull(), kAggregating);
    } else if (is_large) {
      check(large.Append(static_cast<std::uint64_t>(group.integer)), kAggregating);
    } else if (group.integer > std::numeric_limits<std::int64_t>::max() ||
               group.integer < std::numeric_limits<std::int64_t>::min()) {
      throw InvalidArgument(fmt::format("{} does not fit 64 bits: make a column of doubles from it, and sum that",
                                        to_string(aggregate_)));
    } else {
      check(builder.Append(static_cast<std::int64_t>(group.integer)), kAggregating);
    }
  }
  const auto results = checked(is_large ? large.Finish() : builder.Finish(), kAggregating);
  return is_extreme() ? cast(results, values_type_) : results;
}

std::shared_ptr<arrow::Array> Aggregation::double_results(std::int64_t count) const {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  arrow::DoubleBuilder builder;
  for (std::int64_t i = 0; i < count; ++i) {
    const Group& group = groups_[static_cast<std::size_t>(i)];
    if (is_left_out(group)) {
      check(builder.AppendNull(), kAggregating);
      continue;
    }
    double result = 0;
    if (aggregate_.kind == Kind::mean) {
      result = mean_of(group);
    } else if (aggregate_.kind == Kind::std) {
      const double divisor = static_cast<double>(group.count) - static_cast<double>(options_.ddof);
      result = divisor > 0 ? std::sqrt(group.squares / divisor) : kNan;
    } else if (aggregate_.kind == Kind::sum) {
      result = group.number + group.compensation;
    } else {
      result = group.has_extreme ? group.number : kNan;
    }
    check(builder.Append(result), kAggregating);
  }
  const auto results = checked(builder.Finish(), kAggregating);
  return is_extreme() ? cast(results, values_type_) : results;
}

std::shared_ptr<arrow::Array> Aggregation::quantile_results(std::int64_t count) const {
  arrow::DoubleBuilder builder;
  for (std::int64_t i = 0; i < count; ++i) {
    const bool is_null = is_left_out(groups_[static_cast<std::size_t>(i)]);
    const auto result = quantiles_.quantile(static_cast<std::uint32_t>(i), aggregate_.q);
    check(is_null || !result ? builder.AppendNull() : builder.Append(*result), kAggregating);
  }
  return checked(builder.Finish(), kAggregating);
}

std::shared_ptr<arrow::Array> Aggregation::count_results(std::int64_t count) const {
  arrow::Int64Builder builder;
  for (std::int64_t i = 0; i < count; ++i) {
    const Group group = i < std::ssize(groups_) ? groups_[static_cast<std::size_t>(i)] : Group();
    const std::int64_t of_null = group.has_nulls && !options_.ignore_nulls ? 1 : 0;  // as a value of its own
    const bool counts_all = aggregate_.kind == Kind::count;
    check(builder.Append(counts_all ? group.count : distinct_.count(static_cast<std::uint32_t>(i)) + of_null),
          kAggregating);
  }
  return checked(builder.Finish(), kAggregating);
}

std::shared_ptr<arrow::Array> Aggregation::results(std::int64_t count) const {
  if (aggregate_.kind == Kind::count || aggregate_.kind == Kind::count_distinct) return count_results(count);
  if (values_type_ == nullptr) return nulls(count, arrow::null());
  const auto type = result_type(aggregate_, *values_type_);
  if (type->id() == arrow::Type::NA) return nulls(count, type);
  if (aggregate_.kind == Kind::quantile) return quantile_results(count);
  if (is_number(*type)) return is_float(*type) ? double_results(count) : integer_results(count);
  auto extremes = extremes_.results(count, type);
  if (options_.ignore_nulls) return extremes;
  arrow::BooleanBuilder counts;
  for (std::int64_t i = 0; i < count; ++i)
    check(counts.Append(!is_left_out(groups_[static_cast<std::size_t>(i)])), kAggregating);
  return checked(arrow::compute::IfElse(checked(counts.Finish(), kAggregating), extremes, arrow::MakeNullScalar(type)),
                 kAggregating)
      .make_array();
}

}  // namespace cadre::data
