// Thins long curves out.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <vector>

namespace cadre::report {

// Returns the rows of a trial that a picture keeps, in order: all if there are at most `limit`. Otherwise the rows are
// divided into buckets of equal length, and of each bucket those with the lowest and the highest value of the first
// columns stay, of as many columns as the limit allows, so that no peak disappears. The first and the last row and
// those of `needed` always stay. NaN marks a row without a value; `columns` have the same length, `rows`.
std::vector<std::size_t> kept_rows(std::span<const std::vector<double>> columns, std::size_t rows,
                                   const std::set<std::size_t>& needed, std::size_t limit);

}  // namespace cadre::report
