// The division of an epoch's rows among ranks. Pure: numbers in, numbers out.
#pragma once

#include <cstdint>
#include <vector>

#include "cadre/value.h"

namespace cadre::data {

struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;  // one past the last
  bool operator==(const RowRange&) const = default;
};
using RowRanges = std::vector<RowRange>;

std::int64_t rows_of(const RowRanges& ranges);
// Returns the rows from `begin` to `end`, counted over the ranges.
RowRanges part_of(const RowRanges& ranges, std::int64_t begin, std::int64_t end);

// A position in an epoch: all ranks share `ranges`, and each rank has taken `taken` rows of its share.
struct ShardPosition {
  std::uint64_t epoch = 0;
  std::int64_t world_size = 1;
  bool equal = false;
  RowRanges ranges = {};  // rows, in the epoch's order
  std::int64_t taken = 0;
};

// Returns a rank's share of the ranges.
RowRanges share_of(const ShardPosition& position, std::int64_t rank);
// Returns a position in which other ranks share the rows that no rank has taken; unless `equal`, also those that an
// equal division had left out.
ShardPosition reshared(const ShardPosition& position, std::int64_t world_size, bool equal);

// Returns the order of `pieces` pieces in an epoch.
std::vector<std::size_t> epoch_order(std::size_t pieces, std::uint64_t seed, std::uint64_t epoch);

}  // namespace cadre::data
