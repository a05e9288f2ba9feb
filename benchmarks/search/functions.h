// Functions whose smallest value searchers look for. functions.py has the same ones for Optuna.
#pragma once

#include <string>
#include <vector>

#include "cadre/tune/search_space.h"
#include "cadre/value.h"

namespace cadre::benchmarks {

struct Function {
  std::string name;
  tune::Space space;
  double (*value)(const Config& config);
};

// Branin, Hartmann of 6 dimensions, Rosenbrock of 10, Ackley of 20, one with categories, integers, a logarithm and
// conditional parameters, and the error of networks on MNIST after their last epoch.
const std::vector<Function>& functions();

}  // namespace cadre::benchmarks
