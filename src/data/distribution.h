// Aggregates that keep values: quantiles, and numbers of different values.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/keys.h"
#include "data/plan.h"

namespace cadre::data {

// The values of groups, for quantiles.
class Quantiles {
 public:
  void add(std::uint32_t group, double value);
  // Returns the quantile of a group's values, interpolated between the two values around it as numpy and pandas do it;
  // NaN if one of them is NaN; empty without values.
  std::optional<double> quantile(std::uint32_t group, double q) const;
  std::int64_t held_bytes() const { return held_bytes_; }

  // Returns the values of all groups, as rows of a group and a value, and drops them; null: there are none.
  Block release();
  // Adds what release() has returned.
  void add(const Block& released);
  // Computes the quantile of each group that has values, and drops these.
  void settle(double q);

 private:
  std::vector<std::vector<double>> values_;  // of each group
  std::int64_t held_bytes_ = 0;
  std::vector<std::optional<double>> settled_;  // of each group; empty: not settled, or without values
};

// The number of different values of groups, without nulls. NaN equals NaN.
class DistinctCounts {
 public:
  // `groups` has the group of each row; null: all are in group 0.
  void add(const std::shared_ptr<arrow::Array>& values, const arrow::UInt32Array* groups, bool ignore_nan);
  std::int64_t count(std::uint32_t group) const {
    return (group < counts_.size() ? counts_[group] : 0) + (group < settled_.size() ? settled_[group] : 0);
  }
  std::int64_t held_bytes() const { return held_bytes_; }

  // The same as those of Quantiles. NaN that were ignored are ignored when they are added again.
  Block release();
  void add(const Block& released, bool ignore_nan);
  void settle();

 private:
  std::unique_ptr<KeyNumbers> keys_;   // group and value; null: nothing was added
  std::vector<std::int64_t> counts_;   // of the values in keys_
  std::vector<std::int64_t> settled_;  // of others, whose groups get no more values
  std::int64_t held_bytes_ = 0;        // approximate
};

}  // namespace cadre::data
