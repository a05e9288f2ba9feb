// Random numbers of the gamma distribution, whose pairs give the beta distribution of mix-up.
#pragma once

#include <cmath>

#include "cadre/random.h"

namespace cadre::detail {

// Draws one with scale 1. `shape` is above 0. Source: Marsaglia and Tsang, "A simple method for generating gamma
// variables" (2000).
inline double draw_gamma(Random& random, double shape) {
  if (shape < 1) return draw_gamma(random, shape + 1) * std::pow(1 - random.uniform(), 1 / shape);
  const double d = shape - 1. / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.normal();
    const double v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(1 - random.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

}  // namespace cadre::detail
