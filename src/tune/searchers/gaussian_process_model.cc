#include "tune/searchers/gaussian_process_model.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tune/searchers/bounded_minimizer.h"

namespace cadre::tune {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

// Returns a lower triangle: the covariances of the data, with noise.
MatrixXd noisy_covariances(const Kernel& kernel, const MatrixXd& points, const Hyperparameters& hyperparameters) {
  const Index n = points.rows();
  MatrixXd covariances(n, n);
  for (Index i = 0; i < n; ++i)
    covariances.col(i).tail(n - i) =
        kernel.covariances(points.bottomRows(n - i), points.row(i), hyperparameters.kernel);
  covariances.diagonal().array() += std::exp(hyperparameters.log_noise);
  return covariances;
}

// Returns the Cholesky factor of the covariances, with more noise if they are singular, as those of equal points are.
Eigen::LLT<MatrixXd> regular_root(MatrixXd covariances) {
  for (double added = 1e-10 * covariances.diagonal().maxCoeff();; added *= 10) {
    Eigen::LLT<MatrixXd> root(covariances);
    if (root.info() == Eigen::Success) return root;
    covariances.diagonal().array() += added;
  }
}

// Source of the prior: Optuna's GPSampler; noise is rather small.
double log_prior_of_noise(double log_noise, double& gradient) {
  constexpr double kConcentration = 1.1;
  constexpr double kRate = 30;
  const double noise = std::exp(log_noise);
  gradient += kConcentration - 1 - kRate * noise;
  return (kConcentration - 1) * log_noise - kRate * noise;
}

}  // namespace

// ---- MaternKernel

MaternKernel::MaternKernel(std::vector<Feature> features) : features_(std::move(features)) {
  for (const Feature& feature : features_) num_length_scales_ = std::max(num_length_scales_, feature.length_scale + 1);
}

double MaternKernel::variance(const VectorXd& hyperparameters) const {
  return std::exp(hyperparameters[num_length_scales_]);
}

Eigen::ArrayXd MaternKernel::squared_differences(const Points& points, const RowVectorXd& point, Index feature) const {
  const auto column = points.col(feature).array();
  if (features_[static_cast<std::size_t>(feature)].categorical) return (column != point[feature]).cast<double>();
  return (column - point[feature]).square();
}

Eigen::ArrayXd MaternKernel::squared_distances(const Points& points, const RowVectorXd& point,
                                               const VectorXd& hyperparameters) const {
  Eigen::ArrayXd distances = Eigen::ArrayXd::Zero(points.rows());
  for (Index i = 0; i < points.cols(); ++i) {
    const auto [scale, categorical] = features_[static_cast<std::size_t>(i)];
    const double weight = std::exp(hyperparameters[scale]);
    if (categorical) {
      distances += weight * squared_differences(points, point, i);
    } else {
      distances += weight * (points.col(i).array() - point[i]).square();
    }
  }
  return distances;
}

VectorXd MaternKernel::covariances(const Points& points, const RowVectorXd& point,
                                   const VectorXd& hyperparameters) const {
  const Eigen::ArrayXd r = (5 * squared_distances(points, point, hyperparameters)).sqrt();
  return variance(hyperparameters) * (1 + r + r.square() / 3) * (-r).exp();
}

void MaternKernel::add_gradient(const Points& points, const RowVectorXd& point, const VectorXd& hyperparameters,
                                const VectorXd& weights, Eigen::Ref<VectorXd> gradient) const {
  const Eigen::ArrayXd r = (5 * squared_distances(points, point, hyperparameters)).sqrt();
  const Eigen::ArrayXd weighted = variance(hyperparameters) * weights.array() * (-r).exp();
  const Eigen::ArrayXd in_distances = -5.0 / 6 * (1 + r) * weighted;
  for (Index i = 0; i < points.cols(); ++i) {
    const Index scale = features_[static_cast<std::size_t>(i)].length_scale;
    gradient[scale] += std::exp(hyperparameters[scale]) * (in_distances * squared_differences(points, point, i)).sum();
  }
  gradient[num_length_scales_] += ((1 + r + r.square() / 3) * weighted).sum();
}

RowVectorXd MaternKernel::point_gradient(const Points& points, const RowVectorXd& point,
                                         const VectorXd& hyperparameters, const VectorXd& weights) const {
  const Eigen::ArrayXd r = (5 * squared_distances(points, point, hyperparameters)).sqrt();
  const Eigen::ArrayXd in_distances = -5.0 / 6 * variance(hyperparameters) * weights.array() * (1 + r) * (-r).exp();
  RowVectorXd gradient = RowVectorXd::Zero(points.cols());
  for (Index i = 0; i < points.cols(); ++i) {
    const auto [scale, categorical] = features_[static_cast<std::size_t>(i)];
    if (categorical) continue;
    gradient[i] = 2 * std::exp(hyperparameters[scale]) * (in_distances * (point[i] - points.col(i).array())).sum();
  }
  return gradient;
}

// Source of the prior: Optuna's GPSampler; length scales and the variance are of the order of 1.
double MaternKernel::log_prior(const VectorXd& hyperparameters, Eigen::Ref<VectorXd> gradient) const {
  double sum = 0;
  for (Index i = 0; i < num_length_scales_; ++i) {
    const double weight = std::exp(hyperparameters[i]);
    sum -= 0.1 * (weight + 1 / weight);
    gradient[i] -= 0.1 * (weight - 1 / weight);
  }
  const double log_variance = hyperparameters[num_length_scales_];
  gradient[num_length_scales_] += 1 - std::exp(log_variance);
  return sum + log_variance - std::exp(log_variance);
}

// ---- Fit

double log_posterior_density(const Kernel& kernel, const TrainingData& data, const Hyperparameters& hyperparameters,
                             VectorXd& gradient) {
  const Index n = data.points.rows();
  const Index num_hyperparameters = kernel.num_hyperparameters();
  const Eigen::LLT<MatrixXd> root(noisy_covariances(kernel, data.points, hyperparameters));
  if (root.info() != Eigen::Success) return -std::numeric_limits<double>::infinity();
  const VectorXd weights = root.solve(data.values);
  // The derivative in each covariance, a lower triangle: those off the diagonal occur twice.
  MatrixXd inverse_root = MatrixXd::Identity(n, n);
  root.matrixL().solveInPlace(inverse_root);
  MatrixXd in_covariances = MatrixXd::Zero(n, n);
  in_covariances.selfadjointView<Eigen::Lower>().rankUpdate(inverse_root.transpose(), -1);
  in_covariances.selfadjointView<Eigen::Lower>().rankUpdate(weights, 1);
  in_covariances.diagonal() /= 2;

  gradient = VectorXd::Zero(num_hyperparameters + 1);
  for (Index i = 0; i < n; ++i)
    kernel.add_gradient(data.points.bottomRows(n - i), data.points.row(i), hyperparameters.kernel,
                        in_covariances.col(i).tail(n - i), gradient.head(num_hyperparameters));
  gradient[num_hyperparameters] = std::exp(hyperparameters.log_noise) * in_covariances.diagonal().sum();
  const double log_determinant = 2 * root.matrixLLT().diagonal().array().log().sum();
  return -0.5 * (log_determinant + data.values.dot(weights)) +
         kernel.log_prior(hyperparameters.kernel, gradient.head(num_hyperparameters)) +
         log_prior_of_noise(hyperparameters.log_noise, gradient[num_hyperparameters]);
}

Hyperparameters default_hyperparameters(const Kernel& kernel) {
  return {.kernel = VectorXd::Zero(kernel.num_hyperparameters()), .log_noise = std::log(0.01)};
}

Hyperparameters fit(const Kernel& kernel, const TrainingData& data, bool noisy, const Hyperparameters& start) {
  constexpr double kWidth = 10;  // of what the logarithms may be; the prior keeps them well inside
  const Index n = kernel.num_hyperparameters();
  VectorXd lower = VectorXd::Constant(n + 1, -kWidth);
  VectorXd upper = VectorXd::Constant(n + 1, kWidth);
  lower[n] = std::log(kLeastNoise);
  upper[n] = noisy ? std::log(10) : lower[n];
  const auto hyperparameters_of = [&](const VectorXd& logarithms) {
    return Hyperparameters{.kernel = logarithms.head(n), .log_noise = logarithms[n]};
  };
  const auto negated_density = [&](const VectorXd& logarithms, VectorXd& gradient) {
    const double density = log_posterior_density(kernel, data, hyperparameters_of(logarithms), gradient);
    gradient *= -1;
    return -density;
  };
  VectorXd logarithms(n + 1);
  logarithms << start.kernel, noisy ? start.log_noise : lower[n];
  const Minimum best = minimize(negated_density, logarithms, lower, upper,
                                {.max_evaluations = 100, .value_tolerance = 1e-5, .point_tolerance = 1e-3});
  return best.point.size() == 0 ? start : hyperparameters_of(best.point);
}

Hyperparameters fit_by_halves(const Kernel& kernel, const TrainingData& data, bool noisy) {
  constexpr Index kFew = 60;
  const Index n = data.points.rows();
  if (n < kFew) return fit(kernel, data, noisy, default_hyperparameters(kernel));
  const auto half = Eigen::seq(n % 2, n - 1, 2);
  const TrainingData halved{data.points(half, Eigen::all), data.values(half)};
  return fit(kernel, data, noisy, fit_by_halves(kernel, halved, noisy));
}

// ---- GaussianProcessModel

GaussianProcessModel::GaussianProcessModel(std::shared_ptr<const Kernel> kernel, TrainingData data,
                                           Hyperparameters hyperparameters)
    : kernel_(std::move(kernel)), data_(std::move(data)), hyperparameters_(std::move(hyperparameters)) {
  root_ = regular_root(noisy_covariances(*kernel_, data_.points, hyperparameters_)).matrixL();
  update_weights();
}

void GaussianProcessModel::update_weights() {
  weights_ = root_.triangularView<Eigen::Lower>().solve(data_.values);
  root_.transpose().triangularView<Eigen::Upper>().solveInPlace(weights_);
}

GaussianProcessModel::Posterior GaussianProcessModel::posterior(const RowVectorXd& point) const {
  Posterior posterior{.covariances = kernel_->covariances(data_.points, point, hyperparameters_.kernel)};
  posterior.whitened = root_.triangularView<Eigen::Lower>().solve(posterior.covariances);
  posterior.mean = posterior.covariances.dot(weights_);
  posterior.variance = std::max(0.0, kernel_->variance(hyperparameters_.kernel) - posterior.whitened.squaredNorm());
  return posterior;
}

// Blocks of points stay in the cache.
void GaussianProcessModel::posterior(const MatrixXd& points, VectorXd& means, VectorXd& variances) const {
  constexpr Index kBlock = 64;
  const double variance = kernel_->variance(hyperparameters_.kernel);
  means.resize(points.rows());
  variances.resize(points.rows());
  MatrixXd block(data_.points.rows(), std::min(kBlock, points.rows()));
  for (Index begin = 0; begin < points.rows(); begin += kBlock) {
    const Index size = std::min(kBlock, points.rows() - begin);
    auto columns = block.leftCols(size);
    for (Index i = 0; i < size; ++i)
      columns.col(i) = kernel_->covariances(data_.points, points.row(begin + i), hyperparameters_.kernel);
    means.segment(begin, size).noalias() = columns.transpose() * weights_;
    root_.triangularView<Eigen::Lower>().solveInPlace(columns);
    variances.segment(begin, size) = (variance - columns.colwise().squaredNorm().transpose().array()).max(0);
  }
}

RowVectorXd GaussianProcessModel::gradient(const RowVectorXd& point, const Posterior& posterior, double in_mean,
                                           double in_variance) const {
  const VectorXd projection = root_.transpose().triangularView<Eigen::Upper>().solve(posterior.whitened);
  const VectorXd in_covariances = in_mean * weights_ - 2 * in_variance * projection;
  return kernel_->point_gradient(data_.points, point, hyperparameters_.kernel, in_covariances);
}

void GaussianProcessModel::add(const RowVectorXd& point, double value) {
  const Index n = data_.points.rows();
  const Posterior known = posterior(point);
  const double least = 1e-10 * kernel_->variance(hyperparameters_.kernel);
  root_.conservativeResize(n + 1, n + 1);
  root_.col(n).setZero();
  root_.row(n).head(n) = known.whitened.transpose();
  root_(n, n) = std::sqrt(std::max(known.variance + std::exp(hyperparameters_.log_noise), least));
  data_.points.conservativeResize(n + 1, Eigen::NoChange);
  data_.points.row(n) = point;
  data_.values.conservativeResize(n + 1);
  data_.values[n] = value;
  update_weights();
}

}  // namespace cadre::tune
