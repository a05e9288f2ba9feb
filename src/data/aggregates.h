// Aggregates, block by block.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cadre/data/dataset.h"

namespace cadre::data {

// Both compilers have it, and neither standard: sums of 64-bit numbers are exact in it.
__extension__ typedef __int128 WideInteger;

// One aggregate of one column, of all that it was shown.
class Aggregation {
 public:
  Aggregation(Aggregate aggregate, AggregateOptions options) : aggregate_(std::move(aggregate)), options_(options) {}

  const Aggregate& aggregate() const { return aggregate_; }
  // Throws InvalidArgument where the type of the column has no such aggregate.
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
  bool has_doubles_ = false;  // the column is of floating-point numbers
  std::int64_t count_ = 0;    // values that are not left out
  WideInteger integer_sum_ = 0;
  double sum_ = 0;  // with what was lost by rounding in the next one
  double compensation_ = 0;
  double mean_ = 0;  // with the sum of the squares of the differences from it in the next one
  double squares_ = 0;
  std::optional<Value> extreme_ = {};  // of values that are no NaN
  // Of values whose order is not that of their Values: dates, times, decimals. Null: there is none.
  std::shared_ptr<arrow::Scalar> arrow_extreme_ = {};
};

}  // namespace cadre::data
