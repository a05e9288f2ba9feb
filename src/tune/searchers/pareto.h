// Pareto order: comparison of points by several losses, of which small values are good.
#pragma once

#include <cstddef>
#include <vector>

namespace cadre::tune {

// The losses of a point, one for each objective, the same number for all points; they may be infinite and not NaN.
using Losses = std::vector<double>;

// Returns true if `a` is nowhere worse than `b`, and somewhere better.
bool dominates(const Losses& a, const Losses& b);

// Returns the rank of each point: 0 if no other dominates it, 1 if only points of rank 0 do, and so on. Takes
// O(n log n) for one or two objectives; for more, O(n^2) if all points have the same rank.
// Source: Jensen, "Reducing the run-time complexity of multiobjective EAs" (2003) for two objectives; Zhang et al., "An
// Efficient Approach to Nondominated Sorting for Evolutionary Multiobjective Optimization" (2015) for more.
std::vector<std::size_t> non_domination_ranks(const std::vector<Losses>& points);

// Returns the indices of the points of rank 0, ascending. Takes O(n log n) for one or two objectives.
std::vector<std::size_t> pareto_front(const std::vector<Losses>& points);

// Returns the crowding distance of each of the points, which should have the same rank: the sum over the objectives of
// the distance between its two neighbours, as a share of the range of all; infinite for the ends of an objective. An
// objective with the same loss everywhere counts nothing.
// Source: Deb et al., "A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II" (2002).
std::vector<double> crowding_distances(const std::vector<Losses>& points);

}  // namespace cadre::tune
