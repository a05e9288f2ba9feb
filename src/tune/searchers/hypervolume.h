// Sets of loss vectors, small values good: fronts and the volumes that they dominate.
#pragma once

#include <cstddef>
#include <vector>

namespace cadre::tune {

using Losses = std::vector<double>;

// Returns true if a is nowhere worse than b, and somewhere better.
bool dominates(const Losses& a, const Losses& b);

// Returns the rank of each vector: 0 of those that none dominates, 1 of those that only these dominate, and so on.
// Ranks fewer than `needed` vectors exactly only as long as the front is needed: the others have the next rank.
std::vector<std::size_t> non_domination_ranks(const std::vector<Losses>& losses, std::size_t needed);

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
