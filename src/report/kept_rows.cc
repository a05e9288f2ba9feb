#include "report/kept_rows.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace cadre::report {
namespace {

constexpr std::size_t kFewestBuckets = 4;

void keep_extremes(const std::vector<double>& column, std::size_t begin, std::size_t end, std::set<std::size_t>& kept) {
  std::optional<std::size_t> lowest;
  std::optional<std::size_t> highest;
  for (std::size_t row = begin; row < end; ++row) {
    if (!std::isfinite(column[row])) continue;
    if (!lowest || column[row] < column[*lowest]) lowest = row;
    if (!highest || column[row] > column[*highest]) highest = row;
  }
  if (lowest) kept.insert({*lowest, *highest});
}

}  // namespace

std::vector<std::size_t> kept_rows(std::span<const std::vector<double>> columns, std::size_t rows,
                                   const std::set<std::size_t>& needed, std::size_t limit) {
  std::set<std::size_t> kept;
  if (rows <= limit) {
    for (std::size_t row = 0; row < rows; ++row) kept.insert(kept.end(), row);
    return {kept.begin(), kept.end()};
  }
  for (const std::size_t row : needed) {
    if (row < rows) kept.insert(row);
  }
  kept.insert({0, rows - 1});
  const std::size_t per_column = 2 * kFewestBuckets;
  const std::size_t compared = std::clamp<std::size_t>(limit / per_column, 1, std::max<std::size_t>(columns.size(), 1));
  const std::size_t buckets = std::max<std::size_t>(limit / (2 * compared), 1);
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    const std::size_t begin = bucket * rows / buckets;
    const std::size_t end = (bucket + 1) * rows / buckets;
    for (const std::vector<double>& column : columns.first(std::min(compared, columns.size())))
      keep_extremes(column, begin, end, kept);
  }
  return {kept.begin(), kept.end()};
}

}  // namespace cadre::report
