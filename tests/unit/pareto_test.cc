#include "tune/searchers/pareto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/random.h"

namespace cadre::tune {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Few different losses, so that many are equal.
std::vector<Losses> random_points(std::size_t count, std::size_t objectives, std::uint64_t seed) {
  base::RandomStream random(seed, 0, base::Purpose::own);
  std::vector<Losses> points(count, Losses(objectives));
  for (Losses& point : points) {
    for (double& loss : point) loss = random.below(20) == 0 ? kInfinity : static_cast<double>(random.below(12));
  }
  return points;
}

// The definition: removes the points that no other dominates, again and again.
std::vector<std::size_t> ranks_by_definition(const std::vector<Losses>& points) {
  std::vector<std::size_t> ranks(points.size(), points.size());
  std::size_t left = points.size();
  for (std::size_t rank = 0; left > 0; ++rank) {
    std::vector<std::size_t> front;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (ranks[i] < rank) continue;
      bool is_dominated = false;
      for (std::size_t j = 0; j < points.size(); ++j)
        is_dominated = is_dominated || (ranks[j] >= rank && dominates(points[j], points[i]));
      if (!is_dominated) front.push_back(i);
    }
    for (const std::size_t i : front) ranks[i] = rank;
    left -= front.size();
  }
  return ranks;
}

TEST(Pareto, APointDominatesAnotherIfItIsNowhereWorseAndSomewhereBetter) {
  EXPECT_TRUE(dominates({1, 2}, {1, 3}));
  EXPECT_FALSE(dominates({1, 2}, {1, 2}));
  EXPECT_FALSE(dominates({1, 3}, {2, 2}));
  EXPECT_TRUE(dominates({1, 3}, {1, kInfinity}));
}

TEST(Pareto, RanksAreThoseOfTheDefinition) {
  for (std::size_t objectives = 1; objectives <= 4; ++objectives) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const std::vector<Losses> points = random_points(60, objectives, seed);
      ASSERT_EQ(non_domination_ranks(points), ranks_by_definition(points)) << objectives << " objectives, " << seed;
    }
  }
}

TEST(Pareto, TheFrontHasTheIndicesOfRankZero) {
  for (std::size_t objectives = 1; objectives <= 4; ++objectives) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const std::vector<Losses> points = random_points(60, objectives, seed);
      const std::vector<std::size_t> ranks = ranks_by_definition(points);
      std::vector<std::size_t> expected;
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (ranks[i] == 0) expected.push_back(i);
      }
      ASSERT_EQ(pareto_front(points), expected) << objectives << " objectives, " << seed;
    }
  }
  EXPECT_THAT(pareto_front({}), IsEmpty());
  EXPECT_THAT(pareto_front({{2, 1}, {1, 2}, {2, 2}, {1, 2}}), ElementsAre(0, 1, 3));
}

TEST(Pareto, CrowdingIsTheDistanceOfTheNeighboursInEachObjective) {
  EXPECT_THAT(crowding_distances({{0, 10}, {1, 6}, {4, 5}, {10, 0}}),
              ElementsAre(kInfinity, DoubleNear(0.4 + 0.5, 1e-12), DoubleNear(0.9 + 0.6, 1e-12), kInfinity));
  EXPECT_THAT(crowding_distances({}), IsEmpty());
  EXPECT_THAT(crowding_distances({{3, 4}}), ElementsAre(0));
}

TEST(Pareto, CrowdingIgnoresAnObjectiveThatIsTheSameEverywhere) {
  EXPECT_THAT(crowding_distances({{7, 0}, {7, 1}, {7, 4}}), ElementsAre(kInfinity, 1, kInfinity));
  EXPECT_THAT(crowding_distances({{kInfinity, 0}, {kInfinity, 0}}), ElementsAre(0, 0));
}

TEST(Pareto, CrowdingStandsInfiniteLosses) {
  EXPECT_THAT(crowding_distances({{0, 9}, {2, 5}, {4, 4}, {kInfinity, 1}}),
              ElementsAre(kInfinity, DoubleNear(1 + 5.0 / 8, 1e-12), kInfinity, kInfinity));
}

TEST(Pareto, CrowdingStandsLossesWhoseDifferenceOverflows) {
  EXPECT_THAT(crowding_distances({{-1.6e308, 9}, {0, 5}, {0.8e308, 4}, {1.6e308, 1}}),
              ElementsAre(kInfinity, DoubleNear(0.75 + 5.0 / 8, 1e-12), DoubleNear(0.5 + 0.5, 1e-12), kInfinity));
}

}  // namespace
}  // namespace cadre::tune
