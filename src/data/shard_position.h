// Which rows of an epoch are whose. Pure: numbers in, numbers out.
#pragma once

#include <cstdint>
#include <vector>

#include "cadre/value.h"

namespace cadre::data {

struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;  // behind the last one
  bool operator==(const RowRange&) const = default;
};
using RowRanges = std::vector<RowRange>;

std::int64_t rows_of(const RowRanges& ranges);
// The rows from `begin` to `end`, counted over the ranges.
RowRanges part_of(const RowRanges& ranges, std::int64_t begin, std::int64_t end);

// Where a rank is in an epoch: all ranks share `ranges`, and each has taken `taken` rows of its share.
struct ShardPosition {
  std::uint64_t epoch = 0;
  std::int64_t world_size = 1;
  bool equal = false;
  RowRanges ranges = {};  // of the rows in the epoch's order
  std::int64_t taken = 0;
};

// A rank's share of the ranges.
RowRanges share_of(const ShardPosition& position, std::int64_t rank);
// What no rank has taken, shared by another number of ranks.
ShardPosition reshared(const ShardPosition& position, std::int64_t world_size);

// The order of `pieces` pieces in an epoch.
std::vector<std::size_t> epoch_order(std::size_t pieces, std::uint64_t seed, std::uint64_t epoch);

}  // namespace cadre::data
