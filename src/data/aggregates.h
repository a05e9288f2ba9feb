// Aggregates of columns, computed block by block, for all rows or for groups of rows.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cadre/data/dataset.h"
#include "data/distribution.h"
#include "data/plan.h"

namespace cadre::data {

// Supported by both compilers, but not in the standard: sums of 64-bit numbers are exact in it.
__extension__ typedef __int128 WideInteger;

// Returns what is wrong with an aggregate, whatever its column is; empty: nothing.
std::string fault_of(const Aggregate& aggregate);
// Returns the type of an aggregate of a column. Throws InvalidArgument if columns of its type have no such aggregate.
std::shared_ptr<arrow::DataType> result_type(const Aggregate& aggregate, const arrow::DataType& column);

// The least or greatest value of each group, of any type that Arrow orders. NaN is chosen only if there is nothing
// else.
class Extremes {
 public:
  explicit Extremes(bool greatest) : greatest_(greatest) {}

  // Adds one value; `groups` has the group of each row; null: all are in group 0.
  void add(const std::shared_ptr<arrow::Array>& values, const arrow::UInt32Array* groups);
  // Returns a value for each group, null for groups without one.
  std::shared_ptr<arrow::Array> results(std::int64_t groups, const std::shared_ptr<arrow::DataType>& type) const;

 private:
  Block best_of(const Block& candidates) const;

  bool greatest_;
  // Groups and values: those of each group so far, followed by candidates.
  mutable std::vector<Block> blocks_;
  std::int64_t rows_ = 0;
  std::int64_t reduced_rows_ = 0;  // when they were last reduced
};

// One aggregate of one column, over all arrays that were added.
class Aggregation {
 public:
  Aggregation(Aggregate aggregate, AggregateOptions options)
      : aggregate_(std::move(aggregate)), options_(options), extremes_(aggregate_.kind == Aggregate::Kind::max) {}

  const Aggregate& aggregate() const { return aggregate_; }
  // Adds a column's values, or rows for an aggregate without a column. `groups` has the group of each row, below
  // `count`; null: all are in group 0. Throws InvalidArgument if columns of this type have no such aggregate.
  void add(const std::shared_ptr<arrow::Array>& values, const arrow::UInt32Array* groups = nullptr,
           std::int64_t count = 1);
  void add_rows(std::int64_t rows, const arrow::UInt32Array* groups = nullptr, std::int64_t count = 1);
  // Returns the result of each group, in the type of result_type(), or nulls if nothing was added.
  std::shared_ptr<arrow::Array> results(std::int64_t count = 1) const;

  // Returns the bytes of the values that are kept, beside those of the groups.
  std::int64_t held_bytes() const { return quantiles_.held_bytes() + distinct_.held_bytes(); }
  // Returns these values, as rows of a group and a value, and drops them; null: there are none. After that, results()
  // needs them back: add_kept() adds all of some groups, settle_kept() computes the results of these and drops them.
  Block release_kept();
  void add_kept(const Block& released);
  void settle_kept();
  // Returns the bytes that a group takes; approximate for values of variable length.
  static constexpr std::int64_t bytes_per_group() { return static_cast<std::int64_t>(sizeof(Group)); }

 private:
  struct Group {
    bool has_nulls = false;
    bool has_extreme = false;
    std::int64_t count = 0;   // values that are not ignored
    WideInteger integer = 0;  // sum or extreme of integers
    double number = 0;        // sum or extreme of doubles; the rounding error of the sum is in compensation
    double compensation = 0;
    double mean = 0;  // squares: sum of the squared differences from it
    double squares = 0;
  };

  bool is_extreme() const { return aggregate_.kind == Aggregate::Kind::min || aggregate_.kind == Aggregate::Kind::max; }
  void add_integer(Group& group, WideInteger value);
  void add_double(Group& group, double value);
  bool is_left_out(const Group& group) const;
  double mean_of(const Group& group) const;
  std::shared_ptr<arrow::Array> integer_results(std::int64_t count) const;
  std::shared_ptr<arrow::Array> double_results(std::int64_t count) const;
  std::shared_ptr<arrow::Array> quantile_results(std::int64_t count) const;
  std::shared_ptr<arrow::Array> count_results(std::int64_t count) const;

  Aggregate aggregate_;
  AggregateOptions options_;
  std::shared_ptr<arrow::DataType> values_type_ = {};  // null: nothing was added
  std::vector<Group> groups_ = {};
  Extremes extremes_;  // of types other than numbers
  Quantiles quantiles_ = {};
  DistinctCounts distinct_ = {};
};

}  // namespace cadre::data
