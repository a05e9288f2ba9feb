#include "data/shard_position.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/random.h"

namespace cadre::data {

std::int64_t rows_of(const RowRanges& ranges) {
  std::int64_t rows = 0;
  for (const RowRange& range : ranges) rows += range.end - range.begin;
  return rows;
}

RowRanges part_of(const RowRanges& ranges, std::int64_t begin, std::int64_t end) {
  RowRanges part;
  std::int64_t at = 0;
  for (const RowRange& range : ranges) {
    const std::int64_t rows = range.end - range.begin;
    const std::int64_t from = std::clamp<std::int64_t>(begin - at, 0, rows);
    const std::int64_t to = std::clamp<std::int64_t>(end - at, 0, rows);
    at += rows;
    if (from < to) part.push_back({range.begin + from, range.begin + to});
  }
  return part;
}

RowRanges share_of(const ShardPosition& position, std::int64_t rank) {
  const std::int64_t rows = rows_of(position.ranges);
  const std::int64_t each = rows / position.world_size;
  const std::int64_t more = position.equal ? 0 : rows % position.world_size;  // number of ranks with an extra row
  const auto first_row = [&](std::int64_t of) { return of * each + std::min(of, more); };
  return part_of(position.ranges, first_row(rank), first_row(rank + 1));
}

ShardPosition reshared(const ShardPosition& position, std::int64_t world_size, bool equal) {
  ShardPosition next{.epoch = position.epoch, .world_size = world_size, .equal = equal};
  for (std::int64_t rank = 0; rank < position.world_size; ++rank) {
    const RowRanges share = share_of(position, rank);
    for (const RowRange& range : part_of(share, position.taken, rows_of(share))) next.ranges.push_back(range);
  }
  if (position.equal && !equal) {
    const std::int64_t rows = rows_of(position.ranges);
    const RowRanges left_out = part_of(position.ranges, rows - rows % position.world_size, rows);
    next.ranges.insert(next.ranges.end(), left_out.begin(), left_out.end());
  }
  return next;
}

std::vector<std::size_t> epoch_order(std::size_t pieces, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::size_t> order(pieces);
  std::iota(order.begin(), order.end(), std::size_t{0});
  base::RandomStream random(seed, static_cast<std::uint32_t>(epoch), base::Purpose::dataset_epoch);
  for (std::size_t left = pieces; left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

}  // namespace cadre::data
