// Local minima of smooth functions between bounds.
#pragma once

#include <Eigen/Core>
#include <functional>

namespace cadre::tune {

// Returns the value at a point and sets its gradient, which has the point's size. The value may be infinite.
using SmoothFunction = std::function<double(const Eigen::VectorXd& point, Eigen::VectorXd& gradient)>;

struct Minimum {
  Eigen::VectorXd point = {};
  double value = 0;
};

// Options of minimize().
struct MinimizerLimits {
  int max_evaluations = 100;      // of the function
  double value_tolerance = 1e-6;  // ends when a step changes the value by less, relative to it
  double point_tolerance = 1e-6;  // ends when a step changes no coordinate by more
};

// Descends from `start`, which must lie between the bounds. Returns the best point that it has evaluated; no point if
// the value is finite nowhere. Passes on exceptions of the function.
// Sources: the sequential quadratic programming of Kraft, "Algorithm 733: TOMP" (1994), and for many coordinates, whose
// cubes it would take time for, the L-BFGS of Luksan, "Methods and Algorithms for Nonlinear Optimization"; both
// NLopt's.
Minimum minimize(const SmoothFunction& function, const Eigen::VectorXd& start, const Eigen::VectorXd& lower,
                 const Eigen::VectorXd& upper, const MinimizerLimits& limits);

}  // namespace cadre::tune
