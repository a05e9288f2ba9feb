// The standard normal distribution.
#pragma once

namespace cadre::base {

// Returns the cumulative distribution function: the probability of a value below `value`.
double normal_probability(double value);
// Returns the logarithm of normal_probability(), also where that would underflow to 0.
double log_normal_probability(double value);
// Returns the quantile of a probability, from 0 to 1: the inverse of normal_probability(). Infinite for 0 and 1.
double normal_quantile(double probability);

}  // namespace cadre::base
