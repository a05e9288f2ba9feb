// Logarithms of the expected improvement and of the probability of feasibility, with derivatives.
#pragma once

namespace cadre::tune {

// A function of a normal distribution, with its derivatives in mean and variance.
struct NormalUtility {
  double value = 0;
  double in_mean = 0;
  double in_variance = 0;
};

// Returns the logarithm of the expected amount by which a normally distributed value is below `best`. Exact also where
// the amount itself would be 0. The variance must be above 0.
// Source: Ament, Daulton, Eriksson, Balandat and Bakshy, "Unexpected Improvements to Expected Improvement for Bayesian
// Optimization" (2023), https://arxiv.org/abs/2310.20708.
NormalUtility log_expected_improvement(double mean, double variance, double best);

// Returns the logarithm of the probability that a normally distributed value is at most `limit`. The variance must be
// above 0.
// Source: Gardner, Kusner, Xu, Weinberger and Cunningham, "Bayesian Optimization with Inequality Constraints" (2014).
NormalUtility log_probability_of_feasibility(double mean, double variance, double limit);

}  // namespace cadre::tune
