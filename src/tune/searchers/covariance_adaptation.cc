#include "tune/searchers/covariance_adaptation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/normal_distribution.h"
#include "cadre/error.h"

namespace cadre::tune {
namespace {

constexpr double kLargestSigma = 1e6;

std::vector<double> stored_vector(const Eigen::VectorXd& vector) { return {vector.begin(), vector.end()}; }

Eigen::VectorXd vector_of_stored(const std::vector<double>& values, std::size_t size) {
  if (values.size() != size) throw InvalidArgument("the state is of another number of parameters");
  return Eigen::VectorXd::Map(values.data(), static_cast<Eigen::Index>(size));
}

}  // namespace

CovarianceAdaptationRates::CovarianceAdaptationRates(std::size_t dimensions, std::size_t population)
    : weights(static_cast<Eigen::Index>(population)),
      parents(static_cast<Eigen::Index>(std::max<std::size_t>(population / 2, 1))) {
  const auto n = static_cast<double>(dimensions);
  const auto size = static_cast<double>(population);
  for (Eigen::Index i = 0; i < weights.size(); ++i)
    weights[i] = std::log((size + 1) / 2) - std::log(static_cast<double>(i + 1));
  if (population == 1) weights[0] = 1;
  const auto effective = [](const auto& part) { return std::pow(part.sum(), 2) / part.squaredNorm(); };
  mu_eff = effective(weights.head(parents));
  const double mu_eff_negative = population < 3 ? 0 : effective(weights.tail(weights.size() - parents));
  c_1 = 2 / (std::pow(n + 1.3, 2) + mu_eff);
  c_mu = std::min(1 - c_1 - 1e-8, 2 * (mu_eff - 2 + 1 / mu_eff) / (std::pow(n + 2, 2) + mu_eff));
  c_mu = std::max(c_mu, 0.0);
  c_sigma = (mu_eff + 2) / (n + mu_eff + 5);
  d_sigma = 1 + 2 * std::max(0.0, std::sqrt((mu_eff - 1) / (n + 1)) - 1) + c_sigma;
  c_c = (4 + mu_eff / n) / (n + 4 + 2 * mu_eff / n);
  chi = std::sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n));

  const double positive = weights.cwiseMax(0).sum();
  const double negative = -weights.cwiseMin(0).sum();
  double share = 0;  // of the negative weights
  if (c_mu > 0)
    share = std::min({1 + c_1 / c_mu, 1 + 2 * mu_eff_negative / (mu_eff + 2), (1 - c_1 - c_mu) / (n * c_mu)});
  for (double& weight : weights) weight *= weight >= 0 ? 1 / positive : share / negative;
}

CmaDistribution::CmaDistribution(Eigen::VectorXd mean, double sigma) : mean_(std::move(mean)), sigma_(sigma) {
  const Eigen::Index size = mean_.size();
  covariance_ = Eigen::MatrixXd::Identity(size, size);
  scale_ = Eigen::VectorXd::Ones(size);
  sigma_path_ = Eigen::VectorXd::Zero(size);
  covariance_path_ = Eigen::VectorXd::Zero(size);
  decompose();
}

CmaDistribution::CmaDistribution(const State& state) : sigma_(state.sigma), generation_(state.generation) {
  const std::size_t size = state.mean.size();
  mean_ = vector_of_stored(state.mean, size);
  scale_ = vector_of_stored(state.scale, size);
  sigma_path_ = vector_of_stored(state.sigma_path, size);
  covariance_path_ = vector_of_stored(state.covariance_path, size);
  const Eigen::VectorXd covariance = vector_of_stored(state.covariance, size * size);
  covariance_ = covariance.reshaped(static_cast<Eigen::Index>(size), static_cast<Eigen::Index>(size));
  decompose();
}

CmaDistribution::State CmaDistribution::state() const {
  return {.mean = stored_vector(mean_),
          .sigma = sigma_,
          .covariance = stored_vector(covariance_.reshaped()),
          .scale = stored_vector(scale_),
          .sigma_path = stored_vector(sigma_path_),
          .covariance_path = stored_vector(covariance_path_),
          .generation = generation_};
}

void CmaDistribution::decompose() {
  if (mean_.size() == 0) return;
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(covariance_);
  axes_ = solver.eigenvectors();
  const double largest = solver.eigenvalues().maxCoeff();
  lengths_ = solver.eigenvalues().cwiseMax(largest * 1e-16).cwiseSqrt();
}

Eigen::VectorXd CmaDistribution::sample(const Eigen::VectorXd& normal) const {
  return mean_ + sigma_ * scale_.cwiseProduct(axes_ * lengths_.cwiseProduct(normal));
}

Eigen::VectorXd CmaDistribution::whitened(const Eigen::VectorXd& y) const {
  return axes_ * (axes_.transpose() * y).cwiseQuotient(lengths_);
}

double CmaDistribution::standard_deviation(Eigen::Index coordinate) const {
  return sigma_ * scale_[coordinate] * std::sqrt(covariance_(coordinate, coordinate));
}

double CmaDistribution::largest_standard_deviation() const {
  return sigma_ * scale_.cwiseProduct(covariance_.diagonal().cwiseSqrt()).maxCoeff();
}

double CmaDistribution::condition() const { return std::pow(lengths_.maxCoeff() / lengths_.minCoeff(), 2); }

// ---- Adaptation

// Returns the solutions as columns y, with values = m + sigma A y.
Eigen::MatrixXd CmaDistribution::steps_of(const std::vector<CmaSolution>& solutions) const {
  const auto n = static_cast<double>(mean_.size());
  const double longest = std::sqrt(n) + 2 * n / (n + 2);
  Eigen::MatrixXd steps(mean_.size(), static_cast<Eigen::Index>(solutions.size()));
  for (std::size_t i = 0; i < solutions.size(); ++i) {
    Eigen::VectorXd y = (solutions[i].values - mean_).cwiseQuotient(scale_) / sigma_;
    if (!solutions[i].is_current) y *= std::min(1.0, longest / std::max(whitened(y).norm(), 1e-300));
    steps.col(static_cast<Eigen::Index>(i)) = y;
  }
  return steps;
}

// Returns false if the path is so long that the covariance's must not follow it: sigma is far too small.
bool CmaDistribution::adapt_step_size(const Eigen::VectorXd& step, const CovarianceAdaptationRates& rates) {
  const double c = rates.c_sigma;
  sigma_path_ = (1 - c) * sigma_path_ + std::sqrt(c * (2 - c) * rates.mu_eff) * whitened(step);
  const double length = sigma_path_.norm();
  sigma_ = std::min(sigma_ * std::exp(c / rates.d_sigma * (length / rates.chi - 1)), kLargestSigma);
  const double grown = std::sqrt(1 - std::pow(1 - c, 2 * static_cast<double>(generation_ + 1)));
  return length / grown < (1.4 + 2 / (static_cast<double>(mean_.size()) + 1)) * rates.chi;
}

void CmaDistribution::adapt_covariance(const Eigen::MatrixXd& steps, const Eigen::VectorXd& step, bool follows,
                                       const CovarianceAdaptationRates& rates) {
  const double c = rates.c_c;
  covariance_path_ = (1 - c) * covariance_path_;
  if (follows) covariance_path_ += std::sqrt(c * (2 - c) * rates.mu_eff) * step;
  Eigen::VectorXd weights = rates.weights;
  for (Eigen::Index i = 0; i < weights.size(); ++i) {
    if (weights[i] >= 0) continue;
    weights[i] *= static_cast<double>(mean_.size()) / (whitened(steps.col(i)).squaredNorm() + 1e-8);
  }
  const double lost = follows ? 0 : c * (2 - c);
  covariance_ = (1 + rates.c_1 * lost - rates.c_1 - rates.c_mu * rates.weights.sum()) * covariance_ +
                rates.c_1 * covariance_path_ * covariance_path_.transpose() +
                rates.c_mu * steps * weights.asDiagonal() * steps.transpose();
}

void CmaDistribution::adapt(const std::vector<CmaSolution>& solutions, const CovarianceAdaptationRates& rates) {
  ++generation_;
  const Eigen::MatrixXd steps = steps_of(solutions);
  Eigen::VectorXd step = Eigen::VectorXd::Zero(mean_.size());
  Eigen::VectorXd mean_step = step;
  Eigen::VectorXd lacking = step;  // share of the parents that lack the coordinate
  for (Eigen::Index i = 0; i < rates.parents; ++i) {
    step += rates.weights[i] * steps.col(i);
    for (Eigen::Index j = 0; j < step.size(); ++j) {
      const bool exists = solutions[static_cast<std::size_t>(i)].exists[static_cast<std::size_t>(j)];
      (exists ? mean_step : lacking)[j] += rates.weights[i] * (exists ? steps(j, i) : 1);
    }
  }
  mean_ += sigma_ * scale_.cwiseProduct(mean_step);
  const double before = sigma_;
  const bool follows = adapt_step_size(step, rates);
  adapt_covariance(steps, step, follows, rates);
  const Eigen::VectorXd kept = (lacking * std::log(before / sigma_)).array().exp();
  covariance_ = kept.asDiagonal() * covariance_ * kept.asDiagonal();
  covariance_path_ = covariance_path_.cwiseProduct(kept);
  covariance_ = (covariance_ + covariance_.transpose().eval()) / 2;
  decompose();
}

void CmaDistribution::keep_margin(Eigen::Index coordinate, double lower, double upper, double alpha) {
  double& mean = mean_[coordinate];
  const double deviation = standard_deviation(coordinate);
  const auto distance = [](double probability) { return -base::normal_quantile(probability); };
  if (std::isinf(lower) || std::isinf(upper)) {
    const double end = std::isinf(lower) ? upper : lower;
    mean = end + std::copysign(std::min(std::abs(mean - end), deviation * distance(alpha)), mean - end);
    return;
  }
  const double below = base::normal_probability((lower - mean) / deviation);
  const double above = base::normal_probability((mean - upper) / deviation);
  if (below >= alpha / 2 && above >= alpha / 2) return;
  double raised_below = std::max(below, alpha / 2);
  double raised_above = std::max(above, alpha / 2);
  const double inside = 1 - below - above;
  const double excess =
      (1 - raised_below - raised_above - inside) / (raised_below + raised_above + inside - 1.5 * alpha);
  raised_below += excess * (raised_below - alpha / 2);
  raised_above += excess * (raised_above - alpha / 2);
  const double to_lower = distance(std::clamp(raised_below, 1e-12, 0.5 - 1e-12));
  const double to_upper = distance(std::clamp(raised_above, 1e-12, 0.5 - 1e-12));
  const double needed = (upper - lower) / (to_lower + to_upper);
  scale_[coordinate] *= needed / deviation;
  mean = lower + to_lower * needed;
}

}  // namespace cadre::tune
