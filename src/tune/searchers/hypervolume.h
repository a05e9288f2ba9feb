// The volumes that sets of points dominate, and the choice of points by them.
#pragma once

#include <cstddef>
#include <vector>

#include "tune/searchers/pareto.h"

namespace cadre::tune {

// Returns the volume that the vectors dominate, up to the reference, which none may exceed.
double hypervolume(std::vector<Losses> losses, const Losses& reference);

// Returns the indices of `count` vectors, ascending, which together dominate a large volume: chosen one after another,
// each the one that adds most. The reference is a tenth worse than the worst losses. If a loss is not finite: the first
// ones.
std::vector<std::size_t> select_by_hypervolume(const std::vector<Losses>& losses, std::size_t count);

// Returns the indices of `count` vectors: the first fronts, and those of the last one that select_by_hypervolume()
// chooses. With one loss each: the smallest.
std::vector<std::size_t> select_best(const std::vector<Losses>& losses, std::size_t count);

}  // namespace cadre::tune
