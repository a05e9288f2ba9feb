#include "tune/stoppers/regret_bound.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/random.h"
#include "tune/searchers/acquisition_search.h"

namespace cadre::tune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr std::size_t kMostModelled = 150;

// The lower confidence bound of the model's value, negated.
class LowerConfidence final : public AcquisitionFunction {
 public:
  LowerConfidence(const PointFeatures& features, const GaussianProcessModel& model, double beta)
      : features_(features), model_(model), factor_(std::sqrt(beta)) {}

  VectorXd values(const std::vector<Point>& points) const override {
    Eigen::MatrixXd rows(std::ssize(points), features_.size());
    for (Index i = 0; i < rows.rows(); ++i) rows.row(i) = features_.features_of(points[static_cast<std::size_t>(i)]);
    VectorXd means;
    VectorXd variances;
    model_.posterior(rows, means, variances);
    return factor_ * variances.cwiseSqrt() - means;
  }
  double value(const Point& point, VectorXd& gradient) const override {
    const Eigen::RowVectorXd row = features_.features_of(point);
    const GaussianProcessModel::Posterior posterior = model_.posterior(row);
    const double deviation = std::sqrt(std::max(posterior.variance, 1e-12));
    gradient = features_.coordinate_gradient(point, model_.gradient(row, posterior, -1, factor_ / (2 * deviation)))
                   .transpose();
    return factor_ * deviation - posterior.mean;
  }
  VectorXd length_scales() const override {
    const VectorXd& logarithms = model_.hyperparameters().kernel;
    return (-0.5 * logarithms.head(logarithms.size() - 1).array()).exp();
  }

 private:
  const PointFeatures& features_;
  const GaussianProcessModel& model_;
  double factor_;
};

// Returns the squared factor of the standard deviation. Source: Srinivas, Krause, Kakade and Seeger, "Gaussian Process
// Optimization in the Bandit Setting" (2010), with the number of parameters in the place of the size of the domain, and
// a fifth of it, as in Optuna.
double beta_of(std::size_t num_parameters, std::size_t num_evaluations) {
  constexpr double kImprobability = 0.1;
  const auto n = static_cast<double>(num_evaluations);
  return 2 *
         std::log(static_cast<double>(num_parameters) * n * n * std::numbers::pi * std::numbers::pi / 6 /
                  kImprobability) /
         5;
}

}  // namespace

RegretBoundEvaluator::RegretBoundEvaluator(Parameters parameters, double top_trials_ratio, std::int64_t min_n_trials,
                                           std::uint64_t seed)
    : parameters_(std::move(parameters)),
      features_(parameters_),
      kernel_(std::make_shared<MaternKernel>(features_.kernel_features())),
      top_trials_ratio_(top_trials_ratio),
      min_n_trials_(min_n_trials),
      seed_(seed) {}

// Returns the best evaluations, best first: with all that are equal to the last one, up to a limit.
std::vector<EvaluatedPoint> RegretBoundEvaluator::best_of(std::span<const EvaluatedPoint> evaluations) const {
  std::vector<EvaluatedPoint> best(evaluations.begin(), evaluations.end());
  std::ranges::stable_sort(best, {}, &EvaluatedPoint::loss);
  const auto share = static_cast<std::int64_t>(static_cast<double>(best.size()) * top_trials_ratio_);
  const auto most = static_cast<std::size_t>(std::min(std::max(share, min_n_trials_), std::ssize(best)));
  const auto end = std::ranges::upper_bound(best, best[most - 1].loss, {}, &EvaluatedPoint::loss);
  best.resize(std::min(static_cast<std::size_t>(end - best.begin()), kMostModelled));
  return best;
}

RegretBound RegretBoundEvaluator::operator()(std::span<const EvaluatedPoint> evaluations) const {
  const std::vector<EvaluatedPoint> best = best_of(evaluations);
  TrainingData data{.points = Eigen::MatrixXd(std::ssize(best), features_.size()),
                    .values = VectorXd(std::ssize(best))};
  for (Index i = 0; i < data.values.size(); ++i) {
    const auto& [point, loss] = best[static_cast<std::size_t>(i)];
    data.points.row(i) = features_.features_of(point);
    data.values[i] = loss;
  }
  data.values.array() -= data.values.mean();
  const double scale = std::max(1e-10, std::sqrt(data.values.squaredNorm() / static_cast<double>(best.size())));
  data.values /= scale;

  const Hyperparameters fitted = fit_by_halves(*kernel_, data, true);
  RegretBound result{.beta = beta_of(parameters_.size(), best.size()),
                     .scale = scale,
                     .model = GaussianProcessModel(kernel_, std::move(data), fitted)};
  const LowerConfidence lower(features_, result.model, result.beta);
  AcquisitionSearch search{.num_candidates = 2048};
  constexpr std::size_t kIncumbents = 5;
  for (std::size_t i = 0; i < std::min(best.size(), kIncumbents); ++i) search.incumbents.push_back(best[i].point);
  base::RandomStream stream(seed_, static_cast<std::uint32_t>(evaluations.size()), base::Purpose::regret_bound);
  result.lowest = maximize_acquisition(parameters_, lower, search, stream);

  VectorXd means;
  VectorXd variances;
  result.model.posterior(result.model.data().points, means, variances);
  const VectorXd widths = std::sqrt(result.beta) * variances.cwiseSqrt();
  const double least_upper = (means + widths).minCoeff();
  const double least_lower = std::min((means - widths).minCoeff(), -lower.values({result.lowest})[0]);
  result.bound = (least_upper - least_lower) * scale;
  return result;
}

}  // namespace cadre::tune
