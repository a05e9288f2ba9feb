// Aggregates that keep values: quantiles, and numbers of different values.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/keys.h"

namespace cadre::data {

// The values of groups, for quantiles.
class Quantiles {
 public:
  void add(std::uint32_t group, double value);
  // Returns the quantile of a group's values, interpolated between the two values around it as numpy and pandas do it;
  // NaN if one of them is NaN; empty without values.
  std::optional<double> quantile(std::uint32_t group, double q) const;
  std::int64_t held_bytes() const { return held_bytes_; }

 private:
  std::vector<std::vector<double>> values_;  // of each group
  std::int64_t held_bytes_ = 0;
};

// The number of different values of groups, without nulls. NaN equals NaN.
class DistinctCounts {
 public:
  // `groups` has the group of each row; null: all are in group 0.
  void add(const std::shared_ptr<arrow::Array>& values, const arrow::UInt32Array* groups, bool ignore_nan);
  std::int64_t count(std::uint32_t group) const { return group < counts_.size() ? counts_[group] : 0; }
  std::int64_t held_bytes() const { return held_bytes_; }

 private:
  std::unique_ptr<KeyNumbers> keys_;  // group and value; null: nothing was added
  std::vector<std::int64_t> counts_;
  std::int64_t held_bytes_ = 0;  // approximate
};

}  // namespace cadre::data
