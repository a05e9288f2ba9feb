#include "tune/searchers/parzen_estimator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "cadre/tune/search_space.h"

namespace cadre::tune {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

ParzenEstimator estimator(const Parameters& parameters, const std::vector<Point>& points,
                          const std::vector<double>& weights, ParzenEstimator::Smoothing smoothing = {}) {
  std::vector<std::size_t> dimensions(parameters.size());
  std::iota(dimensions.begin(), dimensions.end(), 0U);
  std::vector<const Point*> pointers;
  for (const Point& point : points) pointers.push_back(&point);
  return {parameters, dimensions, pointers, weights, smoothing};
}

double log_density(const ParzenEstimator& estimator, const Point& point) {
  const std::vector<const Point*> points{&point};
  return estimator.log_densities(points).front();
}

double density(const ParzenEstimator& estimator, const Point& point) { return std::exp(log_density(estimator, point)); }

TEST(ParzenEstimator, AMassIsThatOfScipy) {
  // scipy.stats.norm(mean, bandwidth): cdf(end) - cdf(begin), in the upper tail sf(begin) - sf(end).
  EXPECT_NEAR(gaussian_mass(0, 1, 0.3, 0.2), 0.9329601696521064, 1e-14);
  EXPECT_NEAR(gaussian_mass(0.9, 1, 0.1, 0.1) / 6.219831985865787e-16, 1, 1e-9);
  EXPECT_NEAR(gaussian_mass(0, 0.1, 0.9, 0.1) / 6.219831985865787e-16, 1, 1e-9);
  EXPECT_EQ(gaussian_mass(0, 1, 0.5, 0.01), 1);
  EXPECT_EQ(gaussian_mass(0.9, 1, 0.1, 0.01), 0);
}

TEST(ParzenEstimator, ADensityIsThatOfScipy) {
  // scipy.stats.truncnorm in each of two dimensions: sum over components of weight * pdf * pdf.
  const Parameters parameters(Space{{"x", uniform(0, 1)}, {"y", loguniform(1e-5, 1)}});
  const ParzenEstimator mixture =
      estimator(parameters, {{0.1, 0.7}, {0.5, 0.2}}, {1, 0.5}, {.bandwidth = 0.2, .prior_weight = 1});
  EXPECT_NEAR(density(mixture, {0.2, 0.6}), 2.3764662459661077, 1e-12);
  EXPECT_NEAR(density(mixture, {0.99, 0.01}), 0.3718199289670903, 1e-12);
}

TEST(ParzenEstimator, ProbabilitiesOfDiscreteParametersAreThoseOfScipy) {
  // Cells of width 1/4: the bandwidth is 0.8 / 4. Of the choice: (1 + 1/3) / (1 + 3/3) own, (1/3) / (1 + 3/3) others.
  const Parameters parameters(Space{{"n", randint(1, 5)}, {"c", choice({"a", "b", "c"})}});
  const std::vector<Point> points{parameters.settled({0.1, 0.1}), parameters.settled({0.9, 0.5})};
  const ParzenEstimator mixture = estimator(parameters, points, {1, 1}, {.bandwidth = 0.05, .prior_weight = 1});
  EXPECT_NEAR(density(mixture, parameters.settled({0.3, 0.1})), 0.10219939120393312, 1e-12);
}

TEST(ParzenEstimator, ProbabilitiesOfAllValuesAddUpToOne) {
  const Parameters parameters(
      Space{{"n", lograndint(1, 20)}, {"c", choice({"a", "b", "c"})}, {"o", ordinal({1, 2, 8})}});
  const ParzenEstimator mixture =
      estimator(parameters, {parameters.settled({0.1, 0.1, 0.9}), parameters.settled({0.8, 0.5, 0.1})}, {0.3, 1}, {});
  double sum = 0;
  for (double n = 0; n < 1; n = parameters[0].cell(n).end + 1e-9) {
    for (double c = 0; c < 1; c = parameters[1].cell(c).end + 1e-9) {
      for (double o = 0; o < 1; o = parameters[2].cell(o).end + 1e-9)
        sum += density(mixture, parameters.settled({n, c, o}));
    }
  }
  EXPECT_NEAR(sum, 1, 1e-12);
}

TEST(ParzenEstimator, DensitiesIntegrateToOne) {
  const Parameters parameters(Space{{"x", uniform(0, 1)}});
  const ParzenEstimator mixture = estimator(parameters, {{0.02}, {0.9}, {0.91}}, {1, 1, 0.2}, {.bandwidth = 0.03});
  double sum = 0;
  constexpr int kSteps = 10'000;
  for (int i = 0; i < kSteps; ++i) sum += density(mixture, {(i + 0.5) / kSteps}) / kSteps;
  EXPECT_NEAR(sum, 1, 1e-6);
}

TEST(ParzenEstimator, SamplesAreDistributedAsTheDensitySays) {
  const Parameters parameters(Space{{"x", uniform(0, 1)}, {"n", randint(0, 4)}, {"c", choice({"a", "b", "c"})}});
  const ParzenEstimator mixture =
      estimator(parameters, {parameters.settled({0.05, 0.3, 0.1}), parameters.settled({0.6, 0.9, 0.9})}, {1, 0.5},
                {.bandwidth = 0.1});
  constexpr int kSamples = 20'000;
  std::vector<double> drawn(3 * 4 * 10);
  std::vector<double> expected(drawn.size());
  base::RandomStream random(1, 2, base::Purpose::suggestion);
  const auto bin = [](const Point& point) {
    return static_cast<std::size_t>(std::floor(point[0] * 10) * 12 + std::floor(point[1] * 4) * 3 +
                                    std::floor(point[2] * 3));
  };
  for (int i = 0; i < kSamples; ++i) {
    Point point(3, kNotANumber);
    mixture.sample(random, point);
    ++drawn[bin(point)];
  }
  constexpr int kSteps = 20;  // within each bin of x
  for (int x = 0; x < 10 * kSteps; ++x) {
    for (int n = 0; n < 4; ++n) {
      for (int c = 0; c < 3; ++c) {
        const Point point = parameters.settled({(x + 0.5) / (10 * kSteps), (n + 0.5) / 4, (c + 0.5) / 3});
        expected[bin(point)] += kSamples * density(mixture, point) / (10 * kSteps);
      }
    }
  }
  for (std::size_t i = 0; i < drawn.size(); ++i)
    EXPECT_NEAR(drawn[i], expected[i], 5 * std::sqrt(expected[i]) + 2) << "bin " << i;
}

TEST(ParzenEstimator, WithoutPointsIsThePrior) {
  const Parameters parameters(Space{{"x", uniform(0, 1)}, {"c", choice({"a", "b"})}});
  const ParzenEstimator mixture = estimator(parameters, {}, {});
  EXPECT_NEAR(density(mixture, {0.5, 0.25}), 0.5 * 1.0418289771969533, 1e-12);  // scipy.stats.truncnorm
  base::RandomStream random(1, 2, base::Purpose::suggestion);
  Point point(2, kNotANumber);
  mixture.sample(random, point);
  EXPECT_EQ(point, parameters.settled(point));
}

TEST(ParzenEstimator, FarFromAllPointsThePriorRemains) {
  Space space;
  for (int i = 0; i < 50; ++i) space.emplace_back("x" + std::to_string(i), uniform(0, 1));
  space.emplace_back("n", randint(0, 1000));
  const Parameters parameters(space);
  const ParzenEstimator mixture =
      estimator(parameters, {parameters.settled(Point(51, 0.01))}, {1}, {.bandwidth = 0.01});
  const ParzenEstimator prior = estimator(parameters, {}, {});
  const Point far = parameters.settled(Point(51, 0.99));
  EXPECT_NEAR(log_density(mixture, far), log_density(prior, far) - std::log(2), 1e-9);
}

}  // namespace
}  // namespace cadre::tune
