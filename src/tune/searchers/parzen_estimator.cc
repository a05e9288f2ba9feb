#include "tune/searchers/parzen_estimator.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/normal_distribution.h"

namespace cadre::tune {
namespace {

constexpr double kPriorMean = 0.5;
constexpr double kPriorBandwidth = 1;
// Bandwidth of a discrete number in widths of its cell, at least: narrower kernels would never leave the cell.
constexpr double kSmallestInCells = 0.8;

double draw_gaussian(double mean, double bandwidth, double quantile) {
  const double low = base::normal_probability(-mean / bandwidth);
  const double high = base::normal_probability((1 - mean) / bandwidth);
  return mean + bandwidth * base::normal_quantile(low + quantile * (high - low));
}

// Returns the logarithm of a cell's probability. Far from the mean it is a small constant, beside which the share of
// the prior is greater by far.
double log_mass_of(const Parameter::Cell& cell, double mean, double bandwidth) {
  constexpr double kFarthest = 13;  // in bandwidths: 1e-38
  constexpr double kSmallest = -690;
  if (cell.begin - mean > kFarthest * bandwidth || mean - cell.end > kFarthest * bandwidth) return kSmallest;
  const double mass = gaussian_mass(cell.begin, cell.end, mean, bandwidth);
  return mass > 0 ? std::max(kSmallest, std::log(mass)) : kSmallest;
}

}  // namespace

double gaussian_mass(double begin, double end, double mean, double bandwidth) {
  constexpr double kFar = 6;    // erf() is 1 from here on
  constexpr double kZero = 27;  // erfc() is 0 from here on
  const double low = (begin - mean) / (bandwidth * std::numbers::sqrt2);
  const double high = (end - mean) / (bandwidth * std::numbers::sqrt2);
  if (low < -kFar && high > kFar) return 1;
  if (low > kZero || high < -kZero) return 0;
  if (low > 0) return (std::erfc(low) - std::erfc(high)) / 2;
  if (high < 0) return (std::erfc(-high) - std::erfc(-low)) / 2;
  return (std::erf(high) - std::erf(low)) / 2;
}

ParzenEstimator::ParzenEstimator(const Parameters& parameters, std::span<const std::size_t> dimensions,
                                 std::span<const Point* const> points, std::span<const double> weights,
                                 const Smoothing& smoothing)
    : smoothing_(smoothing), cumulative_weights_(weights.begin(), weights.end()) {
  const auto count = static_cast<Eigen::Index>(points.size());
  cumulative_weights_.push_back(smoothing.prior_weight);
  std::partial_sum(cumulative_weights_.begin(), cumulative_weights_.end(), cumulative_weights_.begin());
  const double sum = cumulative_weights_.back();
  log_prior_weight_ = std::log(smoothing.prior_weight / sum);
  log_coefficients_ = (Eigen::Map<const Eigen::ArrayXd>(weights.data(), count) / sum).log();
  for (const std::size_t index : dimensions) {
    Dimension dimension{.parameter = &parameters[index], .index = index, .coordinates = Eigen::ArrayXd(count)};
    for (Eigen::Index i = 0; i < count; ++i) dimension.coordinates[i] = (*points[static_cast<std::size_t>(i)])[index];
    if (!dimension.parameter->is_ordered()) {
      fit_choice(dimension);
    } else if (dimension.parameter->is_discrete()) {
      fit_discrete(dimension);
    } else {
      fit_continuum(dimension);
    }
    dimensions_.push_back(std::move(dimension));
  }
}

void ParzenEstimator::fit_choice(Dimension& dimension) const {
  const double share = smoothing_.prior_weight / static_cast<double>(dimension.coordinates.size() + 1);
  const double sum = 1 + share * static_cast<double>(dimension.parameter->num_values);
  dimension.log_own = std::log((1 + share) / sum);
  dimension.log_other = std::log(share / sum);
}

void ParzenEstimator::fit_continuum(Dimension& dimension) {
  const double unit = smoothing_.bandwidth * std::numbers::sqrt2;
  const auto mass = [this](double mean) { return gaussian_mass(0, 1, mean, smoothing_.bandwidth); };
  log_coefficients_ -= (dimension.coordinates.unaryExpr(mass) * (unit / std::numbers::inv_sqrtpi)).log();
  dimension.coordinates /= unit;
}

void ParzenEstimator::fit_discrete(Dimension& dimension) const {
  std::vector<double> values(dimension.coordinates.begin(), dimension.coordinates.end());
  std::ranges::sort(values);
  const auto repeated = std::ranges::unique(values);
  values.erase(repeated.begin(), repeated.end());
  for (const double value : values) {
    const Parameter::Cell cell = dimension.parameter->cell(value);
    const double bandwidth = std::max(smoothing_.bandwidth, kSmallestInCells * (cell.end - cell.begin));
    dimension.kernels.push_back({value, bandwidth, std::log(gaussian_mass(0, 1, value, bandwidth))});
  }
  for (const double coordinate : dimension.coordinates)
    dimension.kernel_of.push_back(
        static_cast<std::size_t>(std::ranges::lower_bound(values, coordinate) - values.begin()));
}

void ParzenEstimator::sample(base::RandomStream& random, Point& point) const {
  constexpr double kBelowOne = 1 - 0x1p-53;
  const double drawn = random.uniform() * cumulative_weights_.back();
  const auto found = std::ranges::upper_bound(cumulative_weights_, drawn) - cumulative_weights_.begin();
  const std::size_t component = std::min(static_cast<std::size_t>(found), cumulative_weights_.size() - 1);
  for (const Dimension& dimension : dimensions_) {
    const double coordinate = std::clamp(draw(dimension, component, random), 0.0, kBelowOne);
    point[dimension.index] = dimension.parameter->cell(coordinate).middle();
  }
}

double ParzenEstimator::draw(const Dimension& dimension, std::size_t component, base::RandomStream& random) const {
  const double quantile = random.uniform();
  const bool is_prior = component + 1 == cumulative_weights_.size();
  if (is_prior)
    return dimension.parameter->is_ordered() ? draw_gaussian(kPriorMean, kPriorBandwidth, quantile) : quantile;
  const double coordinate = dimension.coordinates[static_cast<Eigen::Index>(component)];
  if (!dimension.parameter->is_ordered()) {
    // All options have the probability of the others, and the point's own one has the rest besides.
    const double any = std::exp(dimension.log_other) * static_cast<double>(dimension.parameter->num_values);
    return quantile < any ? quantile / any : coordinate;
  }
  if (dimension.parameter->is_discrete()) {
    const Kernel& kernel = dimension.kernels[dimension.kernel_of[component]];
    return draw_gaussian(kernel.mean, kernel.bandwidth, quantile);
  }
  return draw_gaussian(coordinate * smoothing_.bandwidth * std::numbers::sqrt2, smoothing_.bandwidth, quantile);
}

std::vector<double> ParzenEstimator::log_densities(std::span<const Point* const> points) const {
  std::vector<double> result;
  result.reserve(points.size());
  Eigen::ArrayXd log_kernels;
  for (const Point* point : points) {
    log_kernels = log_coefficients_;
    double prior = log_prior_weight_;
    for (const Dimension& dimension : dimensions_) {
      prior += log_prior(dimension, (*point)[dimension.index]);
      add_log_kernels(dimension, (*point)[dimension.index], log_kernels);
    }
    const double largest = log_kernels.size() == 0 ? prior : std::max(prior, log_kernels.maxCoeff());
    result.push_back(largest + std::log((log_kernels - largest).exp().sum() + std::exp(prior - largest)));
  }
  return result;
}

double ParzenEstimator::log_prior(const Dimension& dimension, double coordinate) const {
  if (!dimension.parameter->is_ordered()) return -std::log(static_cast<double>(dimension.parameter->num_values));
  const double mass = gaussian_mass(0, 1, kPriorMean, kPriorBandwidth);
  if (dimension.parameter->is_discrete()) {
    const Parameter::Cell cell = dimension.parameter->cell(coordinate);
    return std::log(gaussian_mass(cell.begin, cell.end, kPriorMean, kPriorBandwidth) / mass);
  }
  const double distance = (coordinate - kPriorMean) / (kPriorBandwidth * std::numbers::sqrt2);
  return -distance * distance - std::log(kPriorBandwidth * std::numbers::sqrt2 / std::numbers::inv_sqrtpi * mass);
}

void ParzenEstimator::add_log_kernels(const Dimension& dimension, double coordinate,
                                      Eigen::ArrayXd& log_kernels) const {
  if (!dimension.parameter->is_ordered()) {
    log_kernels += (dimension.coordinates == coordinate)
                       .select(Eigen::ArrayXd::Constant(log_kernels.size(), dimension.log_own), dimension.log_other);
    return;
  }
  if (!dimension.parameter->is_discrete()) {
    log_kernels -= (dimension.coordinates - coordinate / (smoothing_.bandwidth * std::numbers::sqrt2)).square();
    return;
  }
  const Parameter::Cell cell = dimension.parameter->cell(coordinate);
  std::vector<double> log_masses;
  log_masses.reserve(dimension.kernels.size());
  for (const Kernel& kernel : dimension.kernels)
    log_masses.push_back(log_mass_of(cell, kernel.mean, kernel.bandwidth) - kernel.log_mass);
  for (Eigen::Index i = 0; i < log_kernels.size(); ++i)
    log_kernels[i] += log_masses[dimension.kernel_of[static_cast<std::size_t>(i)]];
}

}  // namespace cadre::tune
