#include "tune/searchers/hypervolume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace cadre::tune {
namespace {

using ::testing::ElementsAre;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Hypervolume, IsThatOfOptuna) {
  // optuna._hypervolume.compute_hypervolume(losses, reference)
  EXPECT_DOUBLE_EQ(hypervolume({{1, 3}, {2, 2}, {3, 1}, {3, 3}, {2, 2}}, {4, 4}), 6);
  const std::vector<Losses> losses{{0.1, 0.9, 0.4}, {0.5, 0.5, 0.5}, {0.9, 0.2, 0.6}, {0.3, 0.8, 0.1}, {0.6, 0.6, 0.6}};
  EXPECT_NEAR(hypervolume(losses, {1, 1, 1}), 0.22499999999999995, 1e-12);
  const std::vector<Losses> four{
      {0.1, 0.9, 0.4, 0.2}, {0.5, 0.5, 0.5, 0.5}, {0.9, 0.2, 0.6, 0.1}, {0.3, 0.8, 0.1, 0.9}};
  EXPECT_NEAR(hypervolume(four, {1, 1, 1, 1}), 0.11669999999999998, 1e-12);
  EXPECT_EQ(hypervolume({}, {1, 1}), 0);
}

TEST(SelectByHypervolume, AddsWhatAddsMost) {
  // optuna._hypervolume._solve_hssp with the reference of its TPE: 1.1 times the worst losses.
  const std::vector<Losses> front{{0, 10}, {1, 9}, {4, 4}, {5, 3.9}, {9, 1}, {10, 0}};
  EXPECT_THAT(select_by_hypervolume(front, 1), ElementsAre(2));
  EXPECT_THAT(select_by_hypervolume(front, 3), ElementsAre(1, 2, 4));
  const std::vector<Losses> space{{1, 9, 5}, {2, 8, 4}, {5, 5, 5}, {9, 1, 6}, {4, 7, 2}, {7, 3, 7}, {3, 3, 9}};
  EXPECT_THAT(select_by_hypervolume(space, 4), ElementsAre(1, 2, 4, 6));
}

TEST(SelectByHypervolume, ScalesOfLossesDoNotMatter) {
  const std::vector<Losses> front{{0, 1e200}, {1, 9e199}, {4, 4e199}, {5, 3.9e199}, {9, 1e199}, {10, 0}};
  EXPECT_THAT(select_by_hypervolume(front, 3), ElementsAre(1, 2, 4));
}

TEST(SelectByHypervolume, TakesTheFirstIfALossIsInfinite) {
  EXPECT_THAT(select_by_hypervolume({{0, 10}, {-kInfinity, 11}, {4, 4}}, 2), ElementsAre(0, 1));
}

TEST(SelectBest, TakesWholeFrontsFirst) {
  EXPECT_THAT(select_best({{3, 3}, {1, 2}, {2, 1}, {9, 9}}, 3), testing::UnorderedElementsAre(0, 1, 2));
  EXPECT_THAT(select_best({{0, 10}, {1, 9}, {4, 4}, {10, 0}, {20, 20}}, 1), ElementsAre(2));
  EXPECT_THAT(select_best({{3}, {1}, {2}, {1}}, 3), testing::UnorderedElementsAre(1, 2, 3));
  EXPECT_THAT(select_best({{3, 3}, {1, 2}}, 0), testing::IsEmpty());
}

}  // namespace
}  // namespace cadre::tune
