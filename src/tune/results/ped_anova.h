// Importance of parameters by PED-ANOVA: how differently good trials and all trials are distributed along each of them.
// Pure functions of their arguments.
#pragma once

#include <cstddef>
#include <vector>

#include "cadre/tune/parameters.h"

namespace cadre::tune {

// The number of trials in each cell of a grid over a parameter's values.
using CellCounts = std::vector<std::size_t>;

// Returns the number of cells: that of the values, at most 50 of those in an order, and fewer of logarithmic integers.
std::size_t count_cells(const Parameter& parameter);
// Returns the cell of a settled coordinate.
std::size_t cell_of(const Parameter& parameter, double coordinate);

// Returns the probability of each cell, estimated from observations in some of them and one that is spread over all:
// for cells in an order by kernels whose width follows Scott's rule.
std::vector<double> cell_probabilities(const CellCounts& counts, bool is_ordered);

// Returns the Pearson divergence of the first counts' probabilities from the second ones'.
double pearson_divergence(const CellCounts& good, const CellCounts& all, bool is_ordered);

// Marks the trials whose losses, of which small ones are good, are not above the quantile; all of equal ones.
std::vector<bool> best_quantile(const std::vector<double>& losses, double quantile);

// Returns the importance of each parameter, in no particular unit: 0 if it tells nothing about which trials are good.
// `points` must be settled, and some must be good. A parameter that fewer than two of them have, or that has the same
// cell in all, gets 0.
// Source: Watanabe et al., "PED-ANOVA" (2023), where gamma' is the share of good trials and gamma is 1; with the
// weights of "Conditional PED-ANOVA: Hyperparameter Importance in Hierarchical & Dynamic Search Spaces" (2026).
std::vector<double> ped_anova(const Parameters& parameters, const std::vector<Point>& points,
                              const std::vector<bool>& is_good);

}  // namespace cadre::tune
