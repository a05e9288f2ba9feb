#include "tune/results/ped_anova.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

namespace cadre::tune {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Pointwise;

// The expected probabilities are those of Optuna 5.0.0:
//   counts = numpy.array([...]); cells = numpy.flatnonzero(counts)
//   ScottParzenEstimator(cells, distribution, counts[cells], 1.0).pdf(numpy.arange(counts.size))
// with IntDistribution(0, counts.size - 1) or a CategoricalDistribution.

TEST(PedAnova, ProbabilitiesOfCellsInAnOrderAreThoseOfOptuna) {
  EXPECT_THAT(
      cell_probabilities({0, 3, 1, 0, 0, 2, 0, 1}, true),
      Pointwise(DoubleNear(1e-12), {0.1212824755754672, 0.1503372888614375, 0.1510488016492426, 0.1344681118535631,
                                    0.1214076624095919, 0.1170411701158604, 0.1107386893599505, 0.09367580017488655}));
  EXPECT_THAT(
      cell_probabilities({0, 0, 1, 0}, true),
      Pointwise(DoubleNear(1e-12), {0.1211155187727521, 0.1541357838910703, 0.5783823086208525, 0.1463663887153254}));
}

TEST(PedAnova, ProbabilitiesOfOptionsAreThoseOfOptuna) {
  EXPECT_THAT(cell_probabilities({4, 0, 1, 2}, false),
              Pointwise(DoubleNear(1e-12), {0.390625, 0.140625, 0.203125, 0.265625}));
}

TEST(PedAnova, ProbabilitiesAddUpToOneAlsoWithoutObservations) {
  for (const bool is_ordered : {false, true}) {
    for (const CellCounts& counts : {CellCounts{0, 0, 0}, CellCounts{1, 0, 0}, CellCounts{0, 900, 3}, CellCounts{7}}) {
      const std::vector<double> probabilities = cell_probabilities(counts, is_ordered);
      EXPECT_NEAR(std::accumulate(probabilities.begin(), probabilities.end(), 0.0), 1, 1e-12);
      EXPECT_THAT(probabilities, Each(::testing::Gt(0)));
    }
  }
  EXPECT_THAT(cell_probabilities({0, 0, 0, 0}, true), Each(0.25));
}

TEST(PedAnova, TheSameDistributionDivergesByNothing) {
  EXPECT_NEAR(pearson_divergence({1, 4, 2}, {1, 4, 2}, true), 0, 1e-20);
  EXPECT_GT(pearson_divergence({0, 0, 2}, {3, 3, 3}, true), pearson_divergence({0, 1, 1}, {3, 3, 3}, true));
}

TEST(PedAnova, ValuesHaveCellsOnTheScaleOnWhichTheyAreDrawn) {
  const auto cells = [](const Domain& domain, std::vector<Value> values) {
    const Parameters parameters({{"x", domain}});
    std::vector<std::size_t> cells;
    for (const Value& value : values)
      cells.push_back(cell_of(parameters[0], (*parameters.point_of({{"x", value}}))[0]));
    cells.push_back(count_cells(parameters[0]));
    return cells;
  };
  EXPECT_THAT(cells(uniform(-1, 1), {-1.0, 0.0, 0.999999}), ElementsAre(0, 24, 49, 50));
  EXPECT_THAT(cells(loguniform(1e-4, 1), {1e-4, 1.05e-2, 0.99}), ElementsAre(0, 25, 49, 50));
  EXPECT_THAT(cells(randn(3, 2), {-5.0, 3.01, 11.0}), ElementsAre(0, 25, 49, 50));
  EXPECT_THAT(cells(qrandn(3, 2, 0.5), {-5.0, 11.0}), ElementsAre(0, 49, 50));
  EXPECT_THAT(cells(quniform(0, 1, 0.25), {0.0, 0.25, 1.0}), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(cells(randint(-2, 3), {-2, -1, 2}), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(cells(randint(0, 1000), {0, 499, 999}), ElementsAre(0, 24, 49, 50));
  EXPECT_THAT(cells(randint(0, 99), {0, 1, 3, 49, 97, 98}), ElementsAre(0, 0, 1, 24, 48, 49, 50));  // half-way
  EXPECT_THAT(cells(lograndint(1, 257), {1, 16, 256}), ElementsAre(0, 4, 8, 9));
  EXPECT_THAT(cells(ordinal({"s", "m", "l"}), {"s", "m", "l"}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(cells(choice({"a", "b", "c"}), {"a", "b", "c"}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(cells(randint(4, 5), {4}), ElementsAre(0, 1));
}

TEST(PedAnova, TheBestQuantileHasAllOfEqualOnes) {
  EXPECT_THAT(best_quantile({5, 1, 4, 2, 3}, 0.4), ElementsAre(false, true, false, true, false));
  EXPECT_THAT(best_quantile({5, 1, 2, 2, 3}, 0.4), ElementsAre(false, true, true, true, false));
  EXPECT_THAT(best_quantile({5, 1, 2, 2, 3}, 1e-9), ElementsAre(false, true, false, false, false));
  EXPECT_THAT(best_quantile({}, 0.5), ElementsAre());
}

// Sixty trials whose values are the fractional parts of multiples of square roots of primes.
struct Trials {
  Parameters parameters{{{"x", uniform(-2, 3)},
                         {"lr", loguniform(1e-5, 1)},
                         {"step", quniform(0, 1, 0.25)},
                         {"layers", randint(1, 7)},
                         {"width", randint(0, 200)},
                         {"act", choice({"relu", "tanh", Space{{"momentum", uniform(0, 1)}}})}}};
  std::vector<Point> points = {};
  std::vector<double> losses = {};

  Trials() {
    for (int i = 1; i <= 60; ++i) {
      const auto fraction = [&](double prime) {
        const double multiple = i * std::sqrt(prime);
        return multiple - std::floor(multiple);
      };
      const double x = -2 + 5 * fraction(2);
      const double lr = std::pow(1e-5, 1 - fraction(3));
      const double step = std::floor(5 * fraction(5)) * 0.25;
      const auto layers = static_cast<std::int64_t>(1 + std::floor(6 * fraction(7)));
      const auto width = static_cast<std::int64_t>(std::floor(200 * fraction(11)));
      const auto option = static_cast<int>(3 * fraction(13));
      const double momentum = fraction(17);
      const Value act = option == 0 ? Value("relu") : option == 1 ? Value("tanh") : Value(Dict{{"momentum", momentum}});
      const Config config{{"x", x}, {"lr", lr}, {"step", step}, {"layers", layers}, {"width", width}, {"act", act}};
      points.push_back(parameters.point_of(config).value());
      losses.push_back(std::pow(x - 1, 2) / 4 + std::abs(std::log10(lr) + 3) / 3 + step / 5 +
                       static_cast<double>(layers) * 0.02 + static_cast<double>(width) / 500 + (option == 1 ? 0.5 : 0) +
                       (option == 2 ? std::abs(momentum - 0.9) : 0));
    }
  }

  std::map<std::string, double> shares(double quantile) const {
    const std::vector<double> all = ped_anova(parameters, points, best_quantile(losses, quantile));
    const double sum = std::accumulate(all.begin(), all.end(), 0.0);
    std::map<std::string, double> shares;
    for (std::size_t i = 0; i < all.size(); ++i) shares[parameters[i].path] = all[i] / sum;
    return shares;
  }
};

// Expects what Optuna 5.0.0 gives for the same trials, with a FloatDistribution, an IntDistribution or a
// CategoricalDistribution for each parameter: get_param_importances(study,
// evaluator=PedAnovaImportanceEvaluator(target_quantile=...)).
TEST(PedAnova, ImportancesAreThoseOfOptuna) {
  const auto expect = [](const std::map<std::string, double>& shares, const std::map<std::string, double>& expected) {
    for (const auto& [path, share] : expected) EXPECT_NEAR(shares.at(path), share, 1e-9) << path;
  };
  const Trials trials;
  expect(trials.shares(0.1), {{"act/momentum", 0.5132090350043048},
                              {"x", 0.23106877161954914},
                              {"lr", 0.10891413673805031},
                              {"act", 0.08559388879805102},
                              {"width", 0.02879894155432029},
                              {"layers", 0.0257287214256255},
                              {"step", 0.006686504860098787}});
  expect(trials.shares(0.25), {{"x", 0.3722305229588074},
                               {"lr", 0.2956356511367247},
                               {"act/momentum", 0.1740004604200297},
                               {"act", 0.08258917276346331},
                               {"step", 0.04821280177911286},
                               {"width", 0.016335109877297367},
                               {"layers", 0.010996281064564767}});
}

TEST(PedAnova, AParameterWithoutTwoValuesOrWithoutGoodTrialsHasNoImportance) {
  const Parameters parameters({{"one", randint(3, 4)}, {"same", uniform(0, 1)}, {"x", uniform(0, 1)}});
  const std::vector<Point> points{{0.5, 0.3, 0.1}, {0.5, 0.3, 0.9}, {0.5, 0.3, 0.8}};
  EXPECT_THAT(ped_anova(parameters, points, {true, false, false}), ElementsAre(0, 0, ::testing::Gt(0)));

  const Parameters conditional({{"x", choice({1, uniform(2, 3)})}});
  const double nan = std::nan("");
  EXPECT_THAT(ped_anova(conditional, {{0.25, nan}, {0.75, 0.1}, {0.75, 0.9}}, {true, false, false}),
              ElementsAre(::testing::Gt(0), 0));
}

}  // namespace
}  // namespace cadre::tune
