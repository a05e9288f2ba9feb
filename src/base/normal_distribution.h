// The standard normal distribution.
#pragma once

namespace cadre::base {

// Returns the probability of a smaller value.
double normal_probability(double value);
// Returns its logarithm, which is exact also where the probability itself would be 0.
double log_normal_probability(double value);
// Returns the value below which another one lies with this probability, from 0 to 1; infinite for these two.
double normal_quantile(double probability);

}  // namespace cadre::base
