#include "tune/searchers/parzen_estimator.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "base/normal_distribution.h"

namespace cadre::tune {
namespace {

constexpr double kBelowOne = 1 - 0x1p-53;

// The prior of a number: a Gaussian in the middle of the cube.
constexpr double kPriorMean = 0.5;
constexpr double kPriorBandwidth = 1;

}  // namespace

std::vector<double> parzen_bandwidths(std::span<const double> coordinates, double smallest) {
  const std::size_t count = coordinates.size();
  std::vector<std::pair<double, std::size_t>> sorted(count);
  for (std::size_t i = 0; i < count; ++i) sorted[i] = {coordinates[i], i};
  std::ranges::sort(sorted);
  std::vector<double> bandwidths(count, smallest);
  for (std::size_t i = 0; i < count; ++i) {
    const double before = i == 0 ? 0 : sorted[i].first - sorted[i - 1].first;
    const double after = i + 1 == count ? 0 : sorted[i + 1].first - sorted[i].first;
    bandwidths[sorted[i].second] = std::clamp(std::max(before, after), smallest, 1.0);
  }
  if (count == 1) bandwidths[0] = std::clamp(std::max(coordinates[0], 1 - coordinates[0]), smallest, 1.0);
  return bandwidths;
}

double gaussian_mass(double begin, double end, double mean, double scale) {
  constexpr double kFar = 6;  // the rest is below the rounding of 1
  const double low = (begin - mean) * scale;
  const double high = (end - mean) * scale;
  if (low < -kFar && high > kFar) return 1;
  if (low > 0) return low > 26 ? 0 : (std::erfc(low) - std::erfc(high)) / 2;
  if (high < 0) return high < -26 ? 0 : (std::erfc(-high) - std::erfc(-low)) / 2;
  return (std::erf(high) - std::erf(low)) / 2;
}

ParzenEstimator::ParzenEstimator(const Parameters& parameters, std::vector<std::size_t> dimensions,
                                 std::span<const Point* const> points, std::span<const double> weights,
                                 const ParzenWidths& widths) {
  const auto rows = static_cast<Eigen::Index>(points.size() + 1);
  const auto columns = static_cast<Eigen::Index>(dimensions.size());
  means_.resize(rows, columns);
  scales_.resize(rows, columns);
  log_coefficients_.resize(rows);
  for (std::size_t i = 0; i < weights.size(); ++i) log_coefficients_[static_cast<Eigen::Index>(i)] = weights[i];
  log_coefficients_[rows - 1] = widths.prior_weight;
  log_coefficients_ /= log_coefficients_.sum();
  cumulative_weights_.resize(points.size() + 1);
  std::partial_sum(log_coefficients_.begin(), log_coefficients_.end(), cumulative_weights_.begin());
  log_coefficients_ = log_coefficients_.log();
  for (Eigen::Index column = 0; column < columns; ++column) {
    const std::size_t index = dimensions[static_cast<std::size_t>(column)];
    Dimension& dimension = dimensions_.emplace_back(Dimension{.parameter = &parameters[index], .index = index});
    for (std::size_t i = 0; i < points.size(); ++i) means_(static_cast<Eigen::Index>(i), column) = (*points[i])[index];
    if (dimension.parameter->is_ordered()) {
      fit_number(dimension, column, widths);
    } else {
      fit_choice(dimension, column, widths.prior_weight);
    }
  }
}

void ParzenEstimator::fit_choice(Dimension& dimension, Eigen::Index column, double prior_weight) {
  const Eigen::Index rows = means_.rows();
  const auto options = static_cast<double>(dimension.parameter->num_values);
  const double share = prior_weight / static_cast<double>(rows);
  dimension.log_hit = std::log((1 + share) / (1 + share * options));
  dimension.log_miss = std::log(share / (1 + share * options));
  means_(rows - 1, column) = -1;  // equals no option
  log_coefficients_[rows - 1] += -std::log(options) - dimension.log_miss;
}

void ParzenEstimator::fit_number(Dimension& dimension, Eigen::Index column, const ParzenWidths& widths) {
  const Eigen::Index rows = means_.rows();
  auto means = means_.col(column);
  auto scales = scales_.col(column);
  const std::vector<double> bandwidths =
      parzen_bandwidths({means.data(), static_cast<std::size_t>(rows - 1)}, widths.smallest_bandwidth);
  std::ranges::copy(bandwidths, scales.data());
  means[rows - 1] = kPriorMean;
  scales[rows - 1] = kPriorBandwidth;
  dimension.smallest_bandwidth = widths.smallest_bandwidth;
  scales = 1 / (scales * std::numbers::sqrt2);
  Eigen::ArrayXd masses(rows);
  for (Eigen::Index i = 0; i < rows; ++i) masses[i] = gaussian_mass(0, 1, means[i], scales[i]);
  log_coefficients_ -= masses.log();
  // A discrete dimension's kernels are integrated, others need the density's coefficient.
  if (!dimension.parameter->is_discrete()) log_coefficients_ += (scales * std::numbers::inv_sqrtpi).log();
}

void ParzenEstimator::sample(base::RandomStream& random, Point& point) const {
  const double drawn = random.uniform() * cumulative_weights_.back();
  const auto found = std::ranges::upper_bound(cumulative_weights_, drawn);
  const auto row = std::min<Eigen::Index>(found - cumulative_weights_.begin(), means_.rows() - 1);
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    const Dimension& dimension = dimensions_[i];
    const double mean = means_(row, static_cast<Eigen::Index>(i));
    double coordinate = random.uniform();
    if (dimension.parameter->is_ordered()) {
      const double bandwidth = 1 / (scales_(row, static_cast<Eigen::Index>(i)) * std::numbers::sqrt2);
      const double low = base::normal_probability(-mean / bandwidth);
      const double high = base::normal_probability((1 - mean) / bandwidth);
      coordinate = mean + bandwidth * base::normal_quantile(low + coordinate * (high - low));
    } else if (row + 1 < means_.rows()) {
      // The kernel gives each option a share, and the rest to its own.
      const double shares = std::exp(dimension.log_miss) * static_cast<double>(dimension.parameter->num_values);
      coordinate = coordinate < shares ? coordinate / shares : mean;
    }
    coordinate = std::clamp(coordinate, 0.0, kBelowOne);
    point[dimension.index] = dimension.parameter->cell(coordinate).middle();
  }
}

std::vector<double> ParzenEstimator::log_densities(std::span<const Point> points) const {
  std::vector<double> result;
  result.reserve(points.size());
  Eigen::ArrayXd log_kernels;
  for (const Point& point : points) {
    log_kernels = log_coefficients_;
    for (std::size_t i = 0; i < dimensions_.size(); ++i)
      add_log_kernels(dimensions_[i], static_cast<Eigen::Index>(i), point[dimensions_[i].index], log_kernels);
    const double largest = log_kernels.maxCoeff();
    result.push_back(largest + std::log((log_kernels - largest).exp().sum()));
  }
  return result;
}

void ParzenEstimator::add_log_kernels(const Dimension& dimension, Eigen::Index column, double coordinate,
                                      Eigen::ArrayXd& log_kernels) const {
  const auto means = means_.col(column);
  const auto scales = scales_.col(column);
  if (!dimension.parameter->is_ordered()) {
    log_kernels +=
        (means == coordinate).select(dimension.log_hit, Eigen::ArrayXd::Constant(means.size(), dimension.log_miss));
    return;
  }
  if (!dimension.parameter->is_discrete()) {
    log_kernels -= ((coordinate - means) * scales).square();
    return;
  }
  constexpr double kLeast = 1e-300;
  const Parameter::Cell cell = dimension.parameter->cell(coordinate);
  for (Eigen::Index i = 0; i < means.size(); ++i)
    log_kernels[i] += std::log(std::max(kLeast, gaussian_mass(cell.begin, cell.end, means[i], scales[i])));
}

}  // namespace cadre::tune
