#include "tune/searchers/low_discrepancy_sequence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/random.h"

namespace cadre::tune {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::Ge;
using ::testing::Lt;

using Points = std::vector<std::vector<double>>;

template <class Sequence>
Points points_of(const Sequence& sequence, std::uint64_t begin, std::uint64_t end) {
  Points points;
  for (std::uint64_t i = begin; i < end; ++i) points.push_back(sequence.point(i));
  return points;
}

// The root of Warnock's formula for the mean squared error of the volumes of boxes at the origin.
double l2_star_discrepancy(const Points& points) {
  const auto count = static_cast<double>(points.size());
  double squares = 0;
  double cross = 0;
  for (const auto& a : points) {
    double product = 1;
    for (const double x : a) product *= (1 - x * x) / 2;
    squares += product;
    for (const auto& b : points) {
      double common = 1;
      for (std::size_t j = 0; j < a.size(); ++j) common *= 1 - std::max(a[j], b[j]);
      cross += common;
    }
  }
  return std::sqrt(std::pow(3, -static_cast<double>(points[0].size())) - 2 / count * squares + cross / count / count);
}

Points random_points(std::size_t count, std::size_t dimensions, std::uint64_t seed) {
  base::RandomStream random(seed, 0, base::Purpose::own);
  Points points(count, std::vector<double>(dimensions));
  for (auto& point : points) {
    for (double& x : point) x = random.uniform();
  }
  return points;
}

// From scipy 1.17: [int(64 * x) for x in qmc.Sobol(256, scramble=False, bits=32).random(64)[:, dimension]].
TEST(SobolSequence, HasThePointsOfScipy) {
  const std::map<std::size_t, std::vector<int>> scipy{
      {1, {0,  32, 16, 48, 24, 56, 8,  40, 20, 52, 4,  36, 12, 44, 28, 60, 30, 62, 14, 46, 6,  38,
           22, 54, 10, 42, 26, 58, 18, 50, 2,  34, 17, 49, 1,  33, 9,  41, 25, 57, 5,  37, 21, 53,
           29, 61, 13, 45, 15, 47, 31, 63, 23, 55, 7,  39, 27, 59, 11, 43, 3,  35, 19, 51}},
      {2, {0,  32, 16, 48, 40, 8,  56, 24, 60, 28, 44, 12, 20, 52, 4,  36, 30, 62, 14, 46, 54, 22,
           38, 6,  34, 2,  50, 18, 10, 42, 26, 58, 45, 13, 61, 29, 5,  37, 21, 53, 17, 49, 1,  33,
           57, 25, 41, 9,  51, 19, 35, 3,  27, 59, 11, 43, 15, 47, 31, 63, 39, 7,  55, 23}},
      {7, {0,  32, 48, 16, 56, 24, 8,  40, 60, 28, 12, 44, 4,  36, 52, 20, 54, 22, 6,  38, 14, 46,
           62, 30, 10, 42, 58, 26, 50, 18, 2,  34, 43, 11, 27, 59, 19, 51, 35, 3,  23, 55, 39, 7,
           47, 15, 31, 63, 29, 61, 45, 13, 37, 5,  21, 53, 33, 1,  17, 49, 25, 57, 41, 9}},
      {20, {0,  32, 16, 48, 8,  40, 24, 56, 12, 44, 28, 60, 4,  36, 20, 52, 46, 14, 62, 30, 38, 6,
            54, 22, 34, 2,  50, 18, 42, 10, 58, 26, 21, 53, 5,  37, 29, 61, 13, 45, 25, 57, 9,  41,
            17, 49, 1,  33, 59, 27, 43, 11, 51, 19, 35, 3,  55, 23, 39, 7,  63, 31, 47, 15}},
      {63, {0,  32, 48, 16, 8,  40, 56, 24, 44, 12, 28, 60, 36, 4,  20, 52, 6,  38, 54, 22, 14, 46,
            62, 30, 42, 10, 26, 58, 34, 2,  18, 50, 29, 61, 45, 13, 21, 53, 37, 5,  49, 17, 1,  33,
            57, 25, 9,  41, 27, 59, 43, 11, 19, 51, 35, 3,  55, 23, 7,  39, 63, 31, 15, 47}},
      {255, {0,  32, 48, 16, 24, 56, 40, 8,  28, 60, 44, 12, 4,  36, 52, 20, 50, 18, 2,  34, 42, 10,
             26, 58, 46, 14, 30, 62, 54, 22, 6,  38, 37, 5,  21, 53, 61, 29, 13, 45, 57, 25, 9,  41,
             33, 1,  17, 49, 23, 55, 39, 7,  15, 47, 63, 31, 11, 43, 59, 27, 19, 51, 35, 3}}};
  const Points points = points_of(SobolSequence(SobolSequence::kMostDimensions, std::nullopt), 0, 64);
  for (const auto& [dimension, expected] : scipy) {
    std::vector<int> found;
    for (const auto& point : points) found.push_back(static_cast<int>(64 * point[dimension]));
    EXPECT_THAT(found, ElementsAreArray(expected)) << "dimension " << dimension;
  }
}

// From scipy 1.17: qmc.Sobol(256, scramble=False, bits=32).fast_forward(123456).random(1)[0, [0, 9, 99, 255]] * 2**32.
TEST(SobolSequence, HasAllBitsOfScipy) {
  const std::vector<double> point = SobolSequence(256, std::nullopt).point(123456);
  EXPECT_THAT((std::vector{point[0] * 0x1p32, point[9] * 0x1p32, point[99] * 0x1p32, point[255] * 0x1p32}),
              ElementsAre(113803264.0, 1069711360.0, 3976167424.0, 2091679744.0));
}

TEST(SobolSequence, EachScrambledBlockOfAPowerOfTwoIsStratified) {
  const SobolSequence sequence(30, 7);
  for (const std::uint64_t size : {2, 8, 64}) {
    for (std::uint64_t begin = 0; begin < 256; begin += size) {
      const Points points = points_of(sequence, begin, begin + size);
      for (std::size_t j = 0; j < 30; ++j) {
        std::set<int> strata;
        for (const auto& point : points) strata.insert(static_cast<int>(point[j] * static_cast<double>(size)));
        ASSERT_EQ(strata.size(), size) << "dimension " << j << " from point " << begin;
      }
    }
  }
}

TEST(SobolSequence, ScrambledPointsOfTwoDimensionsLieOneInEachElementaryBox) {
  const Points points = points_of(SobolSequence(2, 3), 0, 64);
  for (int columns = 1; columns <= 64; columns *= 2) {
    std::set<std::pair<int, int>> boxes;
    for (const auto& point : points)
      boxes.emplace(static_cast<int>(point[0] * columns), static_cast<int>(point[1] * (64 / columns)));
    EXPECT_EQ(boxes.size(), 64U) << columns << " columns";
  }
}

TEST(SobolSequence, ScrambledPointsAreUniformAndDependOnTheSeed) {
  double sum = 0;
  double squares = 0;
  constexpr int seeds = 4000;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const double x = SobolSequence(3, seed).point(5)[2];
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / seeds, 0.5, 0.02);
  EXPECT_NEAR(squares / seeds, 1.0 / 3, 0.02);
}

template <class Sequence>
class AnySequence : public ::testing::Test {};
using Sequences = ::testing::Types<SobolSequence, HaltonSequence>;
TYPED_TEST_SUITE(AnySequence, Sequences);

TYPED_TEST(AnySequence, HasALowerDiscrepancyThanRandomPoints) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    for (const std::size_t dimensions : {2, 5}) {
      const double found = l2_star_discrepancy(points_of(TypeParam(dimensions, seed), 0, 128));
      EXPECT_LT(found, 0.75 * l2_star_discrepancy(random_points(128, dimensions, seed)));
    }
  }
}

TYPED_TEST(AnySequence, StaysBelowOne) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const auto& point : points_of(TypeParam(40, seed), 0, 50)) ASSERT_THAT(point, Each(Lt(1)));
    for (const auto& point : points_of(TypeParam(40, seed), 0, 50)) ASSERT_THAT(point, Each(Ge(0)));
  }
}

// From scipy 1.17: qmc.Halton(8, scramble=False).random(8)[7, [0, 1, 2, 7]].
TEST(HaltonSequence, HasThePointsOfScipy) {
  const std::vector<double> point = HaltonSequence(8, std::nullopt).point(7);
  EXPECT_THAT((std::vector{point[0], point[1], point[2], point[7]}),
              ElementsAre(0.875, DoubleNear(5.0 / 9, 1e-15), DoubleNear(0.44, 1e-15), DoubleNear(7.0 / 19, 1e-15)));
}

TEST(HaltonSequence, EachScrambledBlockOfAPowerOfTheBaseIsStratified) {
  const HaltonSequence sequence(3, 11);
  const std::vector<std::uint64_t> bases{2, 3, 5};
  for (std::size_t j = 0; j < 3; ++j) {
    const std::uint64_t size = bases[j] * bases[j] * bases[j];
    for (std::uint64_t begin = 0; begin < 4 * size; begin += size) {
      std::set<int> strata;
      for (const auto& point : points_of(sequence, begin, begin + size))
        strata.insert(static_cast<int>(point[j] * static_cast<double>(size)));
      EXPECT_EQ(strata.size(), size) << "base " << bases[j];
    }
  }
}

TEST(HaltonSequence, ScramblingBreaksTheCorrelationOfLargeBases) {
  const auto correlation = [](const Points& points, std::size_t a, std::size_t b) {
    double sum = 0;
    for (const auto& point : points) sum += 12 * (point[a] - 0.5) * (point[b] - 0.5);
    return std::abs(sum / static_cast<double>(points.size()));
  };
  const Points plain = points_of(HaltonSequence(30, std::nullopt), 0, 60);
  const Points scrambled = points_of(HaltonSequence(30, 5), 0, 60);
  EXPECT_GT(correlation(plain, 28, 29), 0.5) << "it is a known fault of the sequence";
  EXPECT_LT(correlation(scrambled, 28, 29), 0.4);
}

}  // namespace
}  // namespace cadre::tune
