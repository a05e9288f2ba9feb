#include "tune/searchers/bounded_minimizer.h"

#include <nlopt.h>

#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <type_traits>

namespace cadre::tune {
namespace {

using OptimizerHandle = std::unique_ptr<std::remove_pointer_t<nlopt_opt>, decltype(&nlopt_destroy)>;

// The state of a minimisation: NLopt calls evaluate(), a C function through which no exception may pass.
struct Descent {
  const SmoothFunction& function;
  nlopt_opt optimizer;
  Eigen::VectorXd point = {};
  Eigen::VectorXd gradient = {};
  Minimum best = {.point = {}, .value = std::numeric_limits<double>::infinity()};
  std::exception_ptr failure = {};

  double evaluate(const double* coordinates, double* gradient_out) {
    constexpr double kInsteadOfInfinity = 1e100;  // line searches of NLopt fail with infinite values
    point = Eigen::Map<const Eigen::VectorXd>(coordinates, point.size());
    gradient.setZero();
    const double value = function(point, gradient);
    if (value < best.value) best = {point, value};
    const bool usable = std::isfinite(value) && gradient.allFinite();
    if (!usable) gradient.setZero();
    if (gradient_out != nullptr) Eigen::Map<Eigen::VectorXd>(gradient_out, gradient.size()) = gradient;
    return usable ? value : kInsteadOfInfinity;
  }
};

double evaluate_descent(unsigned, const double* coordinates, double* gradient, void* data) {
  auto& descent = *static_cast<Descent*>(data);
  try {
    return descent.evaluate(coordinates, gradient);
  } catch (...) {
    descent.failure = std::current_exception();
    nlopt_force_stop(descent.optimizer);
    return 0;
  }
}

}  // namespace

Minimum minimize(const SmoothFunction& function, const Eigen::VectorXd& start, const Eigen::VectorXd& lower,
                 const Eigen::VectorXd& upper, const MinimizerLimits& limits) {
  constexpr Eigen::Index kManyCoordinates = 40;
  const nlopt_algorithm algorithm = start.size() < kManyCoordinates ? NLOPT_LD_SLSQP : NLOPT_LD_LBFGS;
  const OptimizerHandle optimizer(nlopt_create(algorithm, static_cast<unsigned>(start.size())), &nlopt_destroy);
  Descent descent{.function = function, .optimizer = optimizer.get(), .point = start, .gradient = start};
  nlopt_set_min_objective(optimizer.get(), &evaluate_descent, &descent);
  nlopt_set_lower_bounds(optimizer.get(), lower.data());
  nlopt_set_upper_bounds(optimizer.get(), upper.data());
  nlopt_set_maxeval(optimizer.get(), limits.max_evaluations);
  nlopt_set_ftol_rel(optimizer.get(), limits.value_tolerance);
  nlopt_set_ftol_abs(optimizer.get(), limits.value_tolerance);
  nlopt_set_xtol_abs1(optimizer.get(), limits.point_tolerance);
  Eigen::VectorXd point = start.cwiseMax(lower).cwiseMin(upper);
  double value = 0;
  nlopt_optimize(optimizer.get(), point.data(), &value);  // a failure leaves the best point so far
  if (descent.failure) std::rethrow_exception(descent.failure);
  return descent.best;
}

}  // namespace cadre::tune
