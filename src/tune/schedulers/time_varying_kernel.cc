#include "tune/schedulers/time_varying_kernel.h"

#include <cmath>

namespace cadre::tune {
namespace {

constexpr Eigen::Index kScale = 0;
constexpr Eigen::Index kRate = 1;
constexpr Eigen::Index kVariance = 2;

double log_rate_of(double epsilon) { return std::log(-std::log1p(-epsilon) / 2); }

Eigen::ArrayXd squared_distances(const Kernel::Points& points, const Eigen::RowVectorXd& point) {
  const Eigen::Index features = point.size() - 1;
  return (points.rightCols(features).rowwise() - point.tail(features)).rowwise().squaredNorm().array();
}

Eigen::ArrayXd ages(const Kernel::Points& points, const Eigen::RowVectorXd& point) {
  return (points.col(0).array() - point[0]).abs();
}

}  // namespace

double TimeVaryingKernel::length_scale(const Eigen::VectorXd& hyperparameters) {
  return std::exp(-hyperparameters[kScale] / 2);
}

double TimeVaryingKernel::epsilon(const Eigen::VectorXd& hyperparameters) {
  return -std::expm1(-2 * std::exp(hyperparameters[kRate]));
}

Hyperparameters TimeVaryingKernel::start() {
  Hyperparameters start = default_hyperparameters(TimeVaryingKernel());
  start.kernel[kRate] = log_rate_of(kUsualEpsilon);
  return start;
}

double TimeVaryingKernel::variance(const Eigen::VectorXd& hyperparameters) const {
  return std::exp(hyperparameters[kVariance]);
}

Eigen::VectorXd TimeVaryingKernel::covariances(const Points& points, const Eigen::RowVectorXd& point,
                                               const Eigen::VectorXd& hyperparameters) const {
  const Eigen::ArrayXd exponents = -std::exp(hyperparameters[kScale]) / 2 * squared_distances(points, point) -
                                   std::exp(hyperparameters[kRate]) * ages(points, point);
  return variance(hyperparameters) * exponents.exp();
}

void TimeVaryingKernel::add_gradient(const Points& points, const Eigen::RowVectorXd& point,
                                     const Eigen::VectorXd& hyperparameters, const Eigen::VectorXd& weights,
                                     Eigen::Ref<Eigen::VectorXd> gradient) const {
  const Eigen::ArrayXd weighted = covariances(points, point, hyperparameters).array() * weights.array();
  gradient[kScale] -= std::exp(hyperparameters[kScale]) / 2 * (squared_distances(points, point) * weighted).sum();
  gradient[kRate] -= std::exp(hyperparameters[kRate]) * (ages(points, point) * weighted).sum();
  gradient[kVariance] += weighted.sum();
}

Eigen::RowVectorXd TimeVaryingKernel::point_gradient(const Points& points, const Eigen::RowVectorXd& point,
                                                     const Eigen::VectorXd& hyperparameters,
                                                     const Eigen::VectorXd& weights) const {
  const Eigen::VectorXd weighted = covariances(points, point, hyperparameters).cwiseProduct(weights);
  Eigen::RowVectorXd gradient =
      std::exp(hyperparameters[kScale]) * (weighted.transpose() * points - weighted.sum() * point);
  gradient[0] = 0;
  return gradient;
}

// The length scale and the variance are of the order of 1, as for MaternKernel; the rate is within about a factor of 3
// of the usual one.
double TimeVaryingKernel::log_prior(const Eigen::VectorXd& hyperparameters,
                                    Eigen::Ref<Eigen::VectorXd> gradient) const {
  const double weight = std::exp(hyperparameters[kScale]);
  const double surplus = hyperparameters[kRate] - log_rate_of(kUsualEpsilon);
  gradient[kScale] -= 0.1 * (weight - 1 / weight);
  gradient[kRate] -= surplus;
  gradient[kVariance] += 1 - variance(hyperparameters);
  return -0.1 * (weight + 1 / weight) - surplus * surplus / 2 + hyperparameters[kVariance] - variance(hyperparameters);
}

}  // namespace cadre::tune
