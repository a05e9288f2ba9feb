// Observed values as a Gaussian process models them.
#pragma once

#include <Eigen/Core>
#include <vector>

namespace cadre::tune {

// Returns losses with mean 0 and variance 1, in the same order. Those worse than the median count by their rank, as if
// they were distributed like the better half, mirrored; then differences of good losses are stretched: by the factor
// `stretch` at the best loss, relative to those at the worst. It is 1 or more; 1 leaves them as they are. Infinite
// losses become the worst or the best finite one. There must be a loss.
// Source: Song et al., "The Vizier Gaussian Process Bandit Algorithm" (2024), https://arxiv.org/abs/2408.11527, where
// it is 1.5.
Eigen::VectorXd warped_losses(const std::vector<double>& losses, double stretch);

struct WarpedLimit {
  Eigen::VectorXd values = {};
  double limit = 0;
};

// Returns amounts by which values exceed a limit with mean 0 and variance 1, and 0 as the limit becomes then. Amounts
// that are large beside the others count by their logarithm. Infinite ones become the largest finite one.
WarpedLimit warped_excesses(const std::vector<double>& excesses);

}  // namespace cadre::tune
