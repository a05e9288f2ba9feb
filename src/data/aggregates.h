// Aggregates of columns, computed block by block.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cadre/data/dataset.h"

namespace cadre::data {

// Supported by both compilers, but not in the standard: sums of 64-bit numbers are exact in it.
__extension__ typedef __int128 WideInteger;

// One aggregate of one column, over all arrays that were added.
class Aggregation {
 public:
  Aggregation(Aggregate aggregate, AggregateOptions options) : aggregate_(std::move(aggregate)), options_(options) {}

  const Aggregate& aggregate() const { return aggregate_; }
  // Throws InvalidArgument if columns of this type have no such aggregate.
  void add(const arrow::Array& values);
  Value result() const;

 private:
  void add_integer(std::int64_t value);
  void add_unsigned(std::uint64_t value);
  void add_double(double value);
  void add_sample(double value);
  void add_extreme(Value value);
  void add_extreme_of(const arrow::Array& values);
  Value sum() const;

  Aggregate aggregate_;
  AggregateOptions options_;
  bool has_nulls_ = false;
  bool has_doubles_ = false;  // the column has floating-point numbers
  std::int64_t count_ = 0;    // values that are not ignored
  WideInteger integer_sum_ = 0;
  double sum_ = 0;  // its rounding error is in compensation_
  double compensation_ = 0;
  double mean_ = 0;  // squares_: sum of the squared differences from it
  double squares_ = 0;
  std::optional<Value> extreme_ = {};  // of values other than NaN
  // Extreme of types that Values cannot order: dates, times, decimals. Null: none.
  std::shared_ptr<arrow::Scalar> arrow_extreme_ = {};
};

}  // namespace cadre::data
