#include "tune/schedulers/running_percentile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace cadre::tune {
namespace {

// The definition, with all numbers at once.
double percentile(std::vector<double> numbers, double fraction) {
  std::ranges::sort(numbers);
  const double position = fraction * static_cast<double>(numbers.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const double part = position - std::floor(position);
  if (part == 0) return numbers[below];
  const double width = numbers[below + 1] - numbers[below];
  return part < 0.5 ? numbers[below] + width * part : numbers[below + 1] - width * (1 - part);
}

TEST(RunningPercentile, IsThatOfAllNumbersSoFar) {
  std::mt19937_64 random(1);
  for (const double fraction : {0.0, 0.5, 2.0 / 3, 0.75, 0.99}) {
    RunningPercentile running(fraction);
    EXPECT_EQ(running.value(), std::nullopt);
    std::vector<double> numbers;
    for (int i = 0; i < 300; ++i) {
      numbers.push_back(static_cast<double>(random() % 50) / 7);  // with equal ones
      running.add(numbers.back());
      ASSERT_EQ(running.value(), percentile(numbers, fraction)) << fraction << " of " << numbers.size();
    }
    std::ranges::sort(numbers);
    EXPECT_EQ(running.numbers(), numbers);
    EXPECT_EQ(running.count(), numbers.size());
  }
}

TEST(RunningPercentile, BesideAnInfiniteNumberIsTheLowerOne) {
  RunningPercentile running(0.5);
  running.add(-std::numeric_limits<double>::infinity());
  running.add(3);
  EXPECT_EQ(running.value(), -std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace cadre::tune
