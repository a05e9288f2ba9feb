// The parts of Bayesian optimisation, compared with numpy, mpmath and differences.
#include "tune/searchers/gaussian_process_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "cadre/tune/search_space.h"
#include "tune/searchers/acquisition_search.h"
#include "tune/searchers/bounded_minimizer.h"
#include "tune/searchers/constrained_improvement.h"
#include "tune/searchers/expected_improvement.h"
#include "tune/searchers/point_features.h"
#include "tune/searchers/value_warping.h"

namespace cadre::tune {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Two numbers and a choice.
std::shared_ptr<const MaternKernel> mixed_kernel() {
  return std::make_shared<MaternKernel>(std::vector<MaternKernel::Feature>{{0, false}, {1, false}, {2, true}});
}

TrainingData five_points() {
  TrainingData data{.points = MatrixXd(5, 3), .values = VectorXd(5)};
  data.points << 0.1, 0.2, 0, 0.4, 0.9, 1, 0.8, 0.3, 0, 0.6, 0.6, 2, 0.95, 0.1, 1;
  data.values << 0.5, -1.2, 0.3, -0.4, 1.1;
  return data;
}

Hyperparameters some_hyperparameters() {
  VectorXd kernel(4);
  kernel << 0.7, -0.3, 0.2, 0.4;
  return {.kernel = kernel, .log_noise = -3};
}

RowVectorXd row(double a, double b, double c) { return Eigen::RowVector3d(a, b, c); }

// ---- The model

// Reference: numpy, k @ solve(C, y) and s - k @ solve(C, k) with C the kernel's matrix plus exp(-3) on its diagonal.
TEST(GaussianProcessModel, ThePosteriorIsThatOfTheReference) {
  const GaussianProcessModel model(mixed_kernel(), five_points(), some_hyperparameters());
  const auto at = model.posterior(row(0.5, 0.5, 1));
  EXPECT_NEAR(at.mean, -0.46143204537646054, 1e-12);
  EXPECT_NEAR(at.variance, 0.1996473527160001, 1e-12);
  const auto other_choice = model.posterior(row(0.2, 0.8, 3));
  EXPECT_NEAR(other_choice.mean, -0.35008032663504635, 1e-12);
  EXPECT_NEAR(other_choice.variance, 1.0613656482636695, 1e-12);
}

TEST(GaussianProcessModel, ManyPointsHaveThePosteriorsOfEach) {
  const GaussianProcessModel model(mixed_kernel(), five_points(), some_hyperparameters());
  MatrixXd points(2, 3);
  points << 0.5, 0.5, 1, 0.2, 0.8, 3;
  VectorXd means;
  VectorXd variances;
  model.posterior(points, means, variances);
  for (Index i = 0; i < 2; ++i) {
    EXPECT_NEAR(means[i], model.posterior(points.row(i)).mean, 1e-12);
    EXPECT_NEAR(variances[i], model.posterior(points.row(i)).variance, 1e-12);
  }
}

// Reference: numpy's slogdet and solve; the prior is written out in log_prior().
TEST(GaussianProcessModel, TheDensityIsThatOfTheReference) {
  VectorXd gradient;
  EXPECT_NEAR(log_posterior_density(*mixed_kernel(), five_points(), some_hyperparameters(), gradient),
              -6.013687493927236, 1e-12);
}

TEST(GaussianProcessModel, TheDensitysGradientIsThatOfDifferences) {
  constexpr double kStep = 1e-5;
  VectorXd gradient;
  VectorXd ignored;
  log_posterior_density(*mixed_kernel(), five_points(), some_hyperparameters(), gradient);
  for (Index i = 0; i < gradient.size(); ++i) {
    double ends[2];
    for (const int side : {0, 1}) {
      Hyperparameters moved = some_hyperparameters();
      double& moves = i < moved.kernel.size() ? moved.kernel[i] : moved.log_noise;
      moves += side == 0 ? -kStep : kStep;
      ends[side] = log_posterior_density(*mixed_kernel(), five_points(), moved, ignored);
    }
    EXPECT_NEAR(gradient[i], (ends[1] - ends[0]) / (2 * kStep), 1e-7) << i;
  }
}

TEST(GaussianProcessModel, ThePosteriorsGradientIsThatOfDifferences) {
  constexpr double kStep = 1e-5;
  const GaussianProcessModel model(mixed_kernel(), five_points(), some_hyperparameters());
  const RowVectorXd point = row(0.5, 0.4, 1);
  const auto sum = [&](const RowVectorXd& at) {
    return 2 * model.posterior(at).mean + 3 * model.posterior(at).variance;
  };
  const RowVectorXd gradient = model.gradient(point, model.posterior(point), 2, 3);
  for (Index i = 0; i < 2; ++i) {
    const RowVectorXd step = kStep * RowVectorXd::Unit(3, i);
    EXPECT_NEAR(gradient[i], (sum(point + step) - sum(point - step)) / (2 * kStep), 1e-7) << i;
  }
  EXPECT_EQ(gradient[2], 0) << "a choice has no slope";
}

TEST(GaussianProcessModel, AnAddedValueIsAsIfItHadBeenThereFromTheBeginning) {
  const TrainingData all = five_points();
  GaussianProcessModel grown(mixed_kernel(), {all.points.topRows(3), all.values.head(3)}, some_hyperparameters());
  grown.add(all.points.row(3), all.values[3]);
  grown.add(all.points.row(4), all.values[4]);
  const GaussianProcessModel whole(mixed_kernel(), all, some_hyperparameters());
  const RowVectorXd point = row(0.3, 0.5, 2);
  EXPECT_NEAR(grown.posterior(point).mean, whole.posterior(point).mean, 1e-12);
  EXPECT_NEAR(grown.posterior(point).variance, whole.posterior(point).variance, 1e-12);
}

TEST(GaussianProcessModel, EqualPointsWithoutNoiseHaveAPosterior) {
  TrainingData data{.points = MatrixXd::Zero(4, 3), .values = VectorXd::Ones(4)};
  Hyperparameters hyperparameters = default_hyperparameters(*mixed_kernel());
  hyperparameters.kernel[3] = 10;
  hyperparameters.log_noise = std::log(kLeastNoise) - 40;
  const GaussianProcessModel model(mixed_kernel(), data, hyperparameters);
  EXPECT_NEAR(model.posterior(row(0, 0, 0)).mean, 1, 1e-3);
}

// The values depend on the first feature only, and have noise.
TEST(GaussianProcessModel, AFitFindsWhatMattersAndHowNoisyItIs) {
  TrainingData data{.points = MatrixXd(60, 3), .values = VectorXd(60)};
  base::RandomStream random(1, 0, base::Purpose::suggestion);
  for (Index i = 0; i < 60; ++i) {
    data.points.row(i) = row(random.uniform(), random.uniform(), std::floor(3 * random.uniform()));
    data.values[i] = 1.4 * std::sin(6 * data.points(i, 0)) + 0.2 * random.normal();
  }
  const Hyperparameters noisy = fit(*mixed_kernel(), data, true, default_hyperparameters(*mixed_kernel()));
  EXPECT_GT(noisy.kernel[0], noisy.kernel[1] + 2);
  EXPECT_GT(noisy.kernel[0], noisy.kernel[2] + 2);
  EXPECT_NEAR(std::exp(noisy.log_noise), 0.04, 0.02);
  VectorXd gradient;
  log_posterior_density(*mixed_kernel(), data, noisy, gradient);
  EXPECT_LT(gradient.norm(), 0.1) << "it is a maximum";
  EXPECT_NEAR(fit(*mixed_kernel(), data, false, noisy).log_noise, std::log(kLeastNoise), 1e-12);
}

// ---- Features

Space conditional_space() {
  return {{"optimizer", choice({Space{{"name", "adam"}, {"lr", uniform(0, 1)}}, Space{{"name", "sgd"}}})},
          {"width", uniform(0, 1)}};
}

TEST(GaussianProcessFeatures, APointWithoutANumberIsEquallyFarFromAllThatHaveIt) {
  const Parameters parameters(conditional_space());
  const PointFeatures features(parameters);
  const auto distance = [&](const Point& a, const Point& b) {
    return (features.features_of(a) - features.features_of(b)).tail(features.size() - 1).norm();
  };
  ASSERT_EQ(parameters[0].path, "optimizer");
  ASSERT_EQ(parameters[1].path, "optimizer/lr");
  const double far = distance({0.25, 0, 0.5}, {0.75, kNan, 0.5});
  EXPECT_NEAR(distance({0.25, 0.7, 0.5}, {0.75, kNan, 0.5}), far, 1e-12);
  EXPECT_NEAR(distance({0.25, 0, 0.5}, {0.25, 1, 0.5}), far, 1e-12) << "as far as the ends from each other";
  EXPECT_NEAR(distance({0.25, 0.3, 0.5}, {0.25, 0.4, 0.5}), 0.1, 1e-3) << "as it would be without a condition";
  EXPECT_EQ(distance({0.75, kNan, 0.5}, {0.75, kNan, 0.5}), 0);
}

TEST(GaussianProcessFeatures, TheGradientInCoordinatesIsThatOfDifferences) {
  constexpr double kStep = 1e-6;
  const PointFeatures features{Parameters(conditional_space())};
  const RowVectorXd weights = RowVectorXd::LinSpaced(features.size(), 1, 2);
  const auto sum = [&](const Point& point) { return features.features_of(point).dot(weights); };
  const RowVectorXd gradient = features.coordinate_gradient({0.25, 0.3, 0.5}, weights);
  EXPECT_EQ(gradient[0], 0);
  EXPECT_NEAR(gradient[1], (sum({0.25, 0.3 + kStep, 0.5}) - sum({0.25, 0.3 - kStep, 0.5})) / (2 * kStep), 1e-8);
  EXPECT_NEAR(gradient[2], (sum({0.25, 0.3, 0.5 + kStep}) - sum({0.25, 0.3, 0.5 - kStep})) / (2 * kStep), 1e-8);
}

// ---- Expected improvement

// Reference: mpmath with 60 digits, log(npdf(z) + z * ncdf(z)).
TEST(ExpectedImprovement, IsThatOfTheReferenceAlsoFarFromTheBest) {
  const std::pair<double, double> reference[] = {
      {3, 1.0987396653277078},      {0, -0.91893853320467274},  {-0.5, -1.6205162643873199}, {-2, -4.7687835239171142},
      {-10, -55.553122036122356},   {-30, -457.724653760598},   {-49, -1209.2038267923771},  {-60, -1809.1084601822722},
      {-1000, -500014.73445209116}, {-1e6, -500000000028.54996}};
  for (const auto& [z, expected] : reference) {
    EXPECT_NEAR(log_expected_improvement(0, 1, z).value, expected, 1e-7 + 1e-12 * std::abs(expected)) << z;
    EXPECT_NEAR(log_expected_improvement(5, 4, 5 + 2 * z).value, expected + std::log(2),
                1e-7 + 1e-12 * std::abs(expected));
  }
}

TEST(ExpectedImprovement, DerivativesAreThoseOfDifferences) {
  for (const auto utility : {&log_expected_improvement, &log_probability_of_feasibility}) {
    for (const double limit : {4.0, 0.5, -3.0, -40.0, -80.0}) {
      const double step = 1e-5;
      const NormalUtility at = utility(0.3, 1.2, limit);
      const double in_mean =
          (utility(0.3 + step, 1.2, limit).value - utility(0.3 - step, 1.2, limit).value) / (2 * step);
      const double in_variance =
          (utility(0.3, 1.2 + step, limit).value - utility(0.3, 1.2 - step, limit).value) / (2 * step);
      EXPECT_NEAR(at.in_mean, in_mean, 1e-6 * (1 + std::abs(in_mean))) << limit;
      EXPECT_NEAR(at.in_variance, in_variance, 1e-6 * (1 + std::abs(in_variance))) << limit;
    }
  }
}

// The lr is on an arc, as it may not exist.
TEST(ExpectedImprovement, WithConstraintsItsGradientIsThatOfDifferencesAndItsValuesAreTheSame) {
  constexpr double kStep = 1e-6;
  const PointFeatures features{Parameters(conditional_space())};
  const auto kernel = std::make_shared<MaternKernel>(features.kernel_features());
  const std::vector<Point> known{{0.25, 0.3, 0.5}, {0.25, 0.9, 0.1}, {0.75, kNan, 0.7}};
  TrainingData data{.points = MatrixXd(3, features.size()), .values = Eigen::Vector3d(0.5, -1, 0.2)};
  for (Index i = 0; i < 3; ++i) data.points.row(i) = features.features_of(known[static_cast<std::size_t>(i)]);
  const GaussianProcessModel loss(kernel, data, default_hyperparameters(*kernel));
  data.values = Eigen::Vector3d(-1, 0.3, 1);
  const std::vector<LimitedModel> constraints{{{kernel, data, default_hyperparameters(*kernel)}, -0.4}};
  for (const double best : {-1.0, kInfinite}) {
    const ConstrainedImprovement improvement(features, loss, best, constraints, false);
    VectorXd gradient;
    VectorXd ignored;
    const double value = improvement.value({0.25, 0.6, 0.4}, gradient);
    EXPECT_NEAR(improvement.values({{0.25, 0.6, 0.4}})[0], value, 1e-12);
    const double in_lr = improvement.value({0.25, 0.6 + kStep, 0.4}, ignored) - value;
    const double in_width = improvement.value({0.25, 0.6, 0.4 + kStep}, ignored) - value;
    EXPECT_NEAR(gradient[1], in_lr / kStep, 1e-3);
    EXPECT_NEAR(gradient[2], in_width / kStep, 1e-3);
    EXPECT_LT(improvement.values(known).maxCoeff(), -1e8) << "without noise, a known point brings nothing";
  }
}

// ---- Values

TEST(ValueWarping, LossesKeepTheirOrderAndHaveMeanZeroAndVarianceOne) {
  for (const double stretch : {1.0, 10.0}) {
    const VectorXd warped = warped_losses({3, -1, 1e30, 2, 50, kInfinite, -2}, stretch);
    EXPECT_NEAR(warped.mean(), 0, 1e-12);
    EXPECT_NEAR(warped.squaredNorm() / 7, 1, 1e-12);
    EXPECT_LT(warped[6], warped[1]);
    EXPECT_LT(warped[1], warped[3]);
    EXPECT_LT(warped[3], warped[0]);
    EXPECT_LT(warped[0], warped[4]);
    EXPECT_LT(warped[4], warped[2]);
    EXPECT_EQ(warped[2], warped[5]) << "infinity is as bad as the worst";
  }
}

TEST(ValueWarping, AnOutlierAmongBadLossesCountsByItsRank) {
  EXPECT_EQ(warped_losses({1, 2, 3, 4, 5}, 10), warped_losses({1, 2, 3, 4, 1e9}, 10));
}

// The logarithm of 1 to 10 rises ten times faster at its begin than at its end.
TEST(ValueWarping, DifferencesOfGoodLossesAreStretched) {
  const std::vector<double> losses{0, 0.1, 2, 5, 6, 8, 9};
  const auto shares = [](const VectorXd& warped) -> VectorXd {
    return (warped.array() - warped.minCoeff()) / (warped.maxCoeff() - warped.minCoeff());
  };
  const VectorXd unstretched = shares(warped_losses(losses, 1));
  const VectorXd stretched = shares(warped_losses(losses, 10));
  for (Index i = 0; i < unstretched.size(); ++i)
    EXPECT_NEAR(stretched[i], std::log10(1 + 9 * unstretched[i]), 1e-12) << i;
}

TEST(ValueWarping, WithAStretchOfOneTheBetterHalfIsOnlyShiftedAndScaled) {
  const VectorXd warped = warped_losses({0, 1, 4, 100, 200}, 1);
  EXPECT_NEAR((warped[2] - warped[1]) / (warped[1] - warped[0]), 3, 1e-12);
}

TEST(ValueWarping, EqualAndInfiniteLossesAreNumbers) {
  for (const std::vector<double>& losses :
       {std::vector<double>{2, 2, 2}, {kInfinite, kInfinite}, {-kInfinite, 1}, {7}, {kInfinite, -kInfinite, 0}}) {
    EXPECT_TRUE(warped_losses(losses, 1).allFinite());
    EXPECT_TRUE(warped_losses(losses, 10).allFinite());
  }
}

TEST(ValueWarping, LossesWhoseSquaresAreInfiniteAreNumbers) {
  for (const std::vector<double>& losses :
       {std::vector<double>{-1e200, 0, 1}, {1e300, 1e308, 3}, {-1.7e308, 1.7e308}, {1e200, 1e250, kInfinite}}) {
    EXPECT_TRUE(warped_losses(losses, 1).allFinite()) << losses.front();
    EXPECT_TRUE(warped_losses(losses, 10).allFinite()) << losses.front();
  }
  EXPECT_LT(warped_losses({-1e200, 0, 1}, 1)[0], warped_losses({-1e200, 0, 1}, 1)[1]);
}

TEST(ValueWarping, ExcessesKeepTheirSideOfTheLimit) {
  const std::vector<double> excesses{-3, -1e-3, 0, 1e-3, 5, 1e12, kInfinite};
  const WarpedLimit warped = warped_excesses(excesses);
  for (std::size_t i = 0; i < excesses.size(); ++i)
    EXPECT_EQ(warped.values[static_cast<Index>(i)] <= warped.limit + 1e-15, excesses[i] <= 0) << excesses[i];
  EXPECT_TRUE(warped_excesses({kInfinite}).values.allFinite());
}

// ---- Minimisation

TEST(BoundedMinimizer, FindsAMinimumInsideAndOneAtABound) {
  const auto bowl = [](const VectorXd& x, VectorXd& gradient) {
    gradient = 2 * (x - VectorXd::LinSpaced(2, 0.3, 2));
    return 0.25 * gradient.squaredNorm();
  };
  const Minimum minimum = minimize(bowl, VectorXd::Zero(2), VectorXd::Zero(2), VectorXd::Ones(2), {});
  EXPECT_NEAR(minimum.point[0], 0.3, 1e-4);
  EXPECT_EQ(minimum.point[1], 1);
}

TEST(BoundedMinimizer, PassesOnAnExceptionAndLeavesOutInfinity) {
  const auto throws = [](const VectorXd&, VectorXd&) -> double { throw std::runtime_error("no"); };
  EXPECT_THROW(minimize(throws, VectorXd::Zero(1), VectorXd::Zero(1), VectorXd::Ones(1), {}), std::runtime_error);
  const auto infinite = [](const VectorXd&, VectorXd&) { return kInfinite; };
  EXPECT_EQ(minimize(infinite, VectorXd::Zero(1), VectorXd::Zero(1), VectorXd::Ones(1), {}).point.size(), 0);
}

// ---- Acquisition

// Has its greatest value, 0, at one point of a mixed space.
class Peak final : public AcquisitionFunction {
 public:
  explicit Peak(Point peak) : peak_(std::move(peak)) {}

  VectorXd values(const std::vector<Point>& points) const override {
    VectorXd values(std::ssize(points));
    VectorXd ignored;
    for (Index i = 0; i < values.size(); ++i) values[i] = value(points[static_cast<std::size_t>(i)], ignored);
    return values;
  }
  double value(const Point& point, VectorXd& gradient) const override {
    gradient = VectorXd::Zero(std::ssize(point));
    double sum = 0;
    for (std::size_t i = 0; i < point.size(); ++i) {
      if (std::isnan(point[i]) || std::isnan(peak_[i])) {
        sum -= std::isnan(point[i]) == std::isnan(peak_[i]) ? 0 : 1;
        continue;
      }
      sum -= 10 * (point[i] - peak_[i]) * (point[i] - peak_[i]);
      gradient[static_cast<Index>(i)] = -20 * (point[i] - peak_[i]);
    }
    return sum;
  }
  VectorXd length_scales() const override { return VectorXd::Ones(std::ssize(peak_)); }

 private:
  Point peak_;
};

TEST(AcquisitionSearch, FindsThePeakInNumbersIntegersChoicesAndUnderConditions) {
  const Parameters parameters({{"optimizer", choice({Space{{"name", "adam"}, {"lr", uniform(0, 1)}},
                                                     Space{{"name", "sgd"}, {"momentum", uniform(0, 1)}}})},
                               {"layers", randint(0, 10)},
                               {"width", randint(0, 10'000)},
                               {"x", uniform(0, 1)},
                               {"order", ordinal({1, 5, 25})}});
  const Config best{{"optimizer", Dict{{"name", "sgd"}, {"momentum", 0.123}}},
                    {"layers", 7},
                    {"width", 4321},
                    {"x", 0.987},
                    {"order", 1}};
  const Point peak = *parameters.point_of(best);
  base::RandomStream stream(1, 2, base::Purpose::suggestion);
  const Point found =
      maximize_acquisition(parameters, Peak(peak), {.num_candidates = 20, .num_local_searches = 2}, stream);
  const Config config = parameters.config_of(found);
  EXPECT_EQ(config.get<std::string>("optimizer/name"), "sgd");
  EXPECT_NEAR(config.get<double>("optimizer/momentum"), 0.123, 1e-3);
  EXPECT_EQ(config.get<std::int64_t>("layers"), 7);
  EXPECT_NEAR(config.get<double>("width"), 4321, 10);
  EXPECT_NEAR(config.get<double>("x"), 0.987, 1e-3);
  EXPECT_EQ(config.get<std::int64_t>("order"), 1);
}

// A function without length scales, of which each test says the value.
class Landscape : public AcquisitionFunction {
 public:
  VectorXd values(const std::vector<Point>& points) const override {
    VectorXd values(std::ssize(points));
    VectorXd ignored;
    for (Index i = 0; i < values.size(); ++i) values[i] = value(points[static_cast<std::size_t>(i)], ignored);
    return values;
  }
  VectorXd length_scales() const override { return VectorXd::Ones(6); }
};

// Equal coordinates, the best ones at kPeak: a step of a single one leads down.
class Ridge final : public Landscape {
 public:
  static constexpr double kPeak = 23.5 / 30;

  double value(const Point& point, VectorXd& gradient) const override {
    gradient = VectorXd::Zero(std::ssize(point));
    gradient[0] = -2 * (point[0] - kPeak);
    double sum = -std::pow(point[0] - kPeak, 2);
    for (std::size_t i = 1; i < point.size(); ++i) {
      const double step = point[i] - point[i - 1];
      sum -= 100 * step * step;
      gradient[static_cast<Index>(i)] -= 200 * step;
      gradient[static_cast<Index>(i) - 1] += 200 * step;
    }
    return sum;
  }
};

TEST(AcquisitionSearch, MovesIntegersTogetherAlongARidge) {
  Space space;
  for (const char* const key : {"a", "b", "c", "d", "e", "f"}) space.emplace_back(key, randint(0, 30));
  const Parameters parameters(space);
  const Point start = *parameters.point_of({{"a", 3}, {"b", 3}, {"c", 3}, {"d", 3}, {"e", 3}, {"f", 3}});
  base::RandomStream stream(1, 2, base::Purpose::suggestion);
  const Point found = maximize_acquisition(
      parameters, Ridge(), {.num_candidates = 1, .num_local_searches = 1, .incumbents = {start}}, stream);
  EXPECT_EQ(parameters.config_of(found), Config({{"a", 23}, {"b", 23}, {"c", 23}, {"d", 23}, {"e", 23}, {"f", 23}}));
}

// Two choices that are good together, and others that are better together.
class TwoPairs final : public Landscape {
 public:
  double value(const Point& point, VectorXd& gradient) const override {
    gradient = VectorXd::Zero(std::ssize(point));
    const bool low = point[0] < 0.25 && point[1] < 0.25;
    const bool high = point[0] > 0.75 && point[1] > 0.75;
    return high ? 2 : low ? 1 : 0;
  }
};

TEST(AcquisitionSearch, ChangesTwoChoicesAtOnce) {
  const Parameters parameters({{"a", choice({0, 1, 2, 3})}, {"b", choice({0, 1, 2, 3})}});
  const Point start = *parameters.point_of({{"a", 0}, {"b", 0}});
  base::RandomStream stream(1, 2, base::Purpose::suggestion);
  const Point found = maximize_acquisition(
      parameters, TwoPairs(), {.num_candidates = 1, .num_local_searches = 1, .incumbents = {start}}, stream);
  EXPECT_EQ(parameters.config_of(found), Config({{"a", 3}, {"b", 3}}));
}

}  // namespace
}  // namespace cadre::tune
