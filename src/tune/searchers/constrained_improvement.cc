#include "tune/searchers/constrained_improvement.h"

#include <algorithm>
#include <cmath>

#include "tune/searchers/expected_improvement.h"

namespace cadre::tune {
namespace {

using Eigen::Index;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

}  // namespace

VectorXd ConstrainedImprovement::values(const std::vector<Point>& points) const {
  constexpr double kKnown = -1e9;  // lower than that of any point that is not known
  Eigen::MatrixXd rows(std::ssize(points), features_.size());
  for (Index i = 0; i < rows.rows(); ++i) rows.row(i) = features_.features_of(points[static_cast<std::size_t>(i)]);
  VectorXd sums = VectorXd::Zero(rows.rows());
  if (std::isfinite(best_)) add_values(loss_, rows, &log_expected_improvement, best_, sums);
  for (const auto& [model, limit] : constraints_) add_values(model, rows, &log_probability_of_feasibility, limit, sums);
  for (Index i = 0; i < rows.rows() && !noisy_; ++i) {
    if (is_known(rows.row(i))) sums[i] = kKnown;
  }
  return sums;
}

double ConstrainedImprovement::value(const Point& point, VectorXd& gradient) const {
  const RowVectorXd row = features_.features_of(point);
  RowVectorXd in_features = RowVectorXd::Zero(row.size());
  double sum = 0;
  const auto add = [&](const GaussianProcessModel& model, auto* utility, double limit) {
    const GaussianProcessModel::Posterior posterior = model.posterior(row);
    const NormalUtility at = utility(posterior.mean, usable(posterior.variance), limit);
    sum += at.value;
    in_features += model.gradient(row, posterior, at.in_mean, at.in_variance);
  };
  if (std::isfinite(best_)) add(loss_, &log_expected_improvement, best_);
  for (const auto& [model, limit] : constraints_) add(model, &log_probability_of_feasibility, limit);
  gradient = features_.coordinate_gradient(point, in_features).transpose();
  return sum;
}

VectorXd ConstrainedImprovement::length_scales() const {
  const VectorXd& logarithms = loss_.hyperparameters().kernel;
  return (-0.5 * logarithms.head(logarithms.size() - 1).array()).exp();
}

// Without noise, the variance of the noise in the model only keeps its matrix regular.
double ConstrainedImprovement::usable(double variance) const {
  return std::max(noisy_ ? variance : variance - kLeastNoise, 1e-12);
}

bool ConstrainedImprovement::is_known(const RowVectorXd& row) const {
  const Eigen::MatrixXd& known = loss_.data().points;
  for (Index i = 0; i < known.rows(); ++i) {
    if (known.row(i) == row) return true;
  }
  return false;
}

template <class Utility>
void ConstrainedImprovement::add_values(const GaussianProcessModel& model, const Eigen::MatrixXd& rows, Utility utility,
                                        double limit, VectorXd& sums) const {
  VectorXd means;
  VectorXd variances;
  model.posterior(rows, means, variances);
  for (Index i = 0; i < rows.rows(); ++i) sums[i] += utility(means[i], usable(variances[i]), limit).value;
}

}  // namespace cadre::tune
