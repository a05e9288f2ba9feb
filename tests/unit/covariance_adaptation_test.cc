#include "tune/searchers/covariance_adaptation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/normal_distribution.h"
#include "base/random.h"

namespace cadre::tune {
namespace {

using ::testing::DoubleNear;
using ::testing::Pointwise;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

CmaSolution solution(Eigen::VectorXd values) {
  std::vector<bool> exists(static_cast<std::size_t>(values.size()), true);
  return {.values = std::move(values), .exists = std::move(exists)};
}

// The solutions of the reference values below, the best first.
std::vector<CmaSolution> made_up_generation(int generation, int population, int dimensions) {
  std::vector<CmaSolution> solutions;
  for (int k = 0; k < population; ++k) {
    Eigen::VectorXd values(dimensions);
    for (int j = 0; j < dimensions; ++j) values[j] = 0.5 + 0.3 * std::sin(1 + 3 * generation + 5 * k + 7 * j);
    solutions.push_back(solution(values));
  }
  return solutions;
}

// Minimises a function, and returns the distance of the mean from `optimum`.
double distance_after(int generations, std::size_t population, const Eigen::VectorXd& optimum, auto function) {
  CmaDistribution distribution(Eigen::VectorXd::Constant(optimum.size(), 0.5), 0.2);
  const CovarianceAdaptationRates rates(distribution.dimensions(), population);
  base::RandomStream random(1, 0, base::Purpose::own);
  for (int generation = 0; generation < generations; ++generation) {
    std::vector<CmaSolution> solutions;
    for (std::size_t k = 0; k < population; ++k) {
      Eigen::VectorXd normal(optimum.size());
      for (double& number : normal) number = random.normal();
      solutions.push_back(solution(distribution.sample(normal)));
    }
    std::ranges::sort(solutions, {}, [&](const CmaSolution& one) { return function(one.values); });
    distribution.adapt(solutions, rates);
  }
  return (distribution.mean() - optimum).norm();
}

// From cmaes 0.13.1, cmaes.CMA(mean=np.full(3, 0.5), sigma=0.2, population_size=7), after four calls of tell() with the
// solutions of made_up_generation().
TEST(CovarianceAdaptation, AdaptsAsTheReferenceDoes) {
  CmaDistribution distribution(Eigen::VectorXd::Constant(3, 0.5), 0.2);
  for (int generation = 0; generation < 4; ++generation)
    distribution.adapt(made_up_generation(generation, 7, 3), CovarianceAdaptationRates(3, 7));
  const CmaDistribution::State state = distribution.state();
  const auto near = [](const std::vector<double>& expected) { return Pointwise(DoubleNear(1e-7), expected); };
  EXPECT_THAT(state.mean, near({0.494830405, 0.365180302, 0.301887846}));
  EXPECT_NEAR(state.sigma, 0.194607794, 1e-8);
  EXPECT_THAT(state.covariance, near({0.857067743, 0.287359946, 0.454508632, 0.287359946, 1.687437548, 0.932670716,
                                      0.454508632, 0.932670716, 1.830070231}));
  EXPECT_THAT(state.sigma_path, near({0.197863136, -0.801038396, -1.405672442}));
  EXPECT_THAT(state.covariance_path, near({-0.148878441, -1.469262904, -2.066482791}));
}

TEST(CovarianceAdaptation, FindsTheOptimumOfAnIllConditionedFunction) {
  const Eigen::VectorXd optimum{{0.3, 0.6, 0.7, 0.2, 0.55}};
  const auto ellipsoid = [&](const Eigen::VectorXd& x) {
    double sum = 0;
    for (Eigen::Index i = 0; i < x.size(); ++i) sum += std::pow(1e4, i / 4.0) * std::pow(x[i] - optimum[i], 2);
    return sum;
  };
  EXPECT_LT(distance_after(250, 8, optimum, ellipsoid), 1e-6);
}

TEST(CovarianceAdaptation, AStateIsRestoredExactly) {
  CmaDistribution distribution(Eigen::VectorXd::Constant(3, 0.5), 0.2);
  distribution.adapt(made_up_generation(0, 7, 3), CovarianceAdaptationRates(3, 7));
  CmaDistribution other(distribution.state());
  for (int generation = 1; generation < 3; ++generation) {
    const Eigen::VectorXd normal = Eigen::VectorXd::Constant(3, 0.7);
    EXPECT_EQ(distribution.sample(normal), other.sample(normal));
    distribution.adapt(made_up_generation(generation, 7, 3), CovarianceAdaptationRates(3, 7));
    other.adapt(made_up_generation(generation, 7, 3), CovarianceAdaptationRates(3, 7));
  }
  EXPECT_EQ(distribution.mean(), other.mean());
}

TEST(CovarianceAdaptation, ACoordinateThatNoSolutionHasKeepsItsDistribution) {
  CmaDistribution distribution(Eigen::VectorXd::Constant(3, 0.5), 0.2);
  base::RandomStream random(3, 0, base::Purpose::own);
  double deviations = 0;
  constexpr int runs = 200;
  for (int run = 0; run < runs; ++run) {
    CmaDistribution own = distribution;
    for (int generation = 0; generation < 20; ++generation) {
      std::vector<CmaSolution> solutions;
      for (int k = 0; k < 7; ++k) {
        solutions.push_back(solution(own.sample(Eigen::VectorXd{{random.normal(), random.normal(), random.normal()}})));
        solutions.back().exists[1] = false;
      }
      std::ranges::sort(solutions, {}, [](const CmaSolution& one) { return std::abs(one.values[0] - 0.5); });
      own.adapt(solutions, CovarianceAdaptationRates(3, 7));
    }
    EXPECT_EQ(own.mean()[1], 0.5);
    EXPECT_NE(own.mean()[2], 0.5);
    deviations += std::log(own.standard_deviation(1) / 0.2) / runs;
  }
  EXPECT_NEAR(deviations, 0, 0.25);
}

TEST(CovarianceAdaptation, ASolutionThatIsFarAwayMovesTheDistributionALittle) {
  const auto moved = [](bool is_current) {
    CmaDistribution distribution(Eigen::VectorXd::Constant(3, 0.5), 0.01);
    std::vector<CmaSolution> solutions;
    for (int k = 0; k < 7; ++k) solutions.push_back(solution(distribution.mean()));
    solutions[0] = solution(Eigen::VectorXd::Ones(3));
    solutions[0].is_current = is_current;
    distribution.adapt(solutions, CovarianceAdaptationRates(3, 7));
    return (distribution.mean() - Eigen::VectorXd::Constant(3, 0.5)).norm();
  };
  EXPECT_GT(moved(true), 0.3);
  EXPECT_LT(moved(false), 0.03);
  EXPECT_GT(moved(false), 0.01);
}

TEST(CovarianceAdaptation, AMarginIsKeptOnBothSidesOfAnInterval) {
  const auto probabilities = [](double mean, double sigma, double lower, double upper) {
    CmaDistribution distribution(Eigen::VectorXd::Constant(1, mean), sigma);
    distribution.keep_margin(0, lower, upper, 0.1);
    const double deviation = distribution.standard_deviation(0);
    return std::pair(base::normal_probability((lower - distribution.mean()[0]) / deviation),
                     1 - base::normal_probability((upper - distribution.mean()[0]) / deviation));
  };
  const auto [below, above] = probabilities(0.5, 0.001, 0.4, 0.6);
  EXPECT_NEAR(below, 0.05, 1e-9);
  EXPECT_NEAR(above, 0.05, 1e-9);
  const auto [near, far] = probabilities(0.41, 0.03, 0.4, 0.6);
  EXPECT_GT(near, 0.25);
  EXPECT_LT(near, base::normal_probability(-1.0 / 3)) << "what the far side gains comes from it too";
  EXPECT_NEAR(far, 0.05, 1e-9);
  const auto [only, none] = probabilities(0.9, 0.001, 0.8, kInfinity);
  EXPECT_NEAR(only, 0.1, 1e-9);
  EXPECT_EQ(none, 0);
}

TEST(CovarianceAdaptation, AWideDistributionNeedsNoMargin) {
  CmaDistribution distribution(Eigen::VectorXd::Constant(1, 0.5), 0.2);
  distribution.keep_margin(0, 0.45, 0.6, 0.1);
  distribution.keep_margin(0, -kInfinity, 0.6, 0.1);
  EXPECT_EQ(distribution.mean()[0], 0.5);
  EXPECT_EQ(distribution.standard_deviation(0), 0.2);
}

}  // namespace
}  // namespace cadre::tune
