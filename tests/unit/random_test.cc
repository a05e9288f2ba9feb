#include "base/random.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "cadre/error.h"
#include "cadre/random.h"

namespace cadre::base {
namespace {

using Block = std::array<std::uint32_t, 4>;

// Known answers published with the authors' Random123 1.09.
TEST(Philox, GivesThePublishedAnswers) {
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}), (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, TrialsPurposesAndSeedsDoNotShareNumbers) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    for (std::uint32_t trial = 0; trial < 10; ++trial) {
      for (const Purpose purpose : {Purpose::search_space, Purpose::exploit, Purpose::explore}) {
        RandomStream stream(seed, trial, purpose);
        for (int i = 0; i < 10; ++i) EXPECT_TRUE(seen.insert(stream.bits()).second);
      }
    }
  }
}

TEST(RandomStream, APositionCanBeTakenUpAgain) {
  RandomStream stream(1, 2, Purpose::explore);
  stream.bits();
  stream.bits();
  RandomStream later(1, 2, Purpose::explore, 2);
  EXPECT_EQ(stream.bits(), later.bits());
}

TEST(RandomStream, UniformNumbersFillTheUnitInterval) {
  RandomStream stream(5, 0, Purpose::search_space);
  double sum = 0;
  constexpr int count = 100'000;
  for (int i = 0; i < count; ++i) {
    const double value = stream.uniform();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
  }
  EXPECT_NEAR(sum / count, 0.5, 0.005);
}

TEST(RandomStream, BelowReachesEveryNumberAboutEquallyOften) {
  RandomStream stream(5, 1, Purpose::exploit);
  std::vector<int> counts(7);
  for (int i = 0; i < 70'000; ++i) ++counts[stream.below(7)];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);
}

TEST(KeyedRandom, EachExampleHasNumbersOfItsOwnInEachEpochAndLayer) {
  std::set<std::uint64_t> first_numbers;
  const std::vector<std::uint64_t> examples{0, 1, std::uint64_t{1} << 32, (std::uint64_t{1} << 40) - 1};
  for (const std::uint64_t seed : {0, 1})
    for (const std::uint64_t epoch : {0, 1, (1 << 24) - 1})
      for (const std::uint64_t example : examples)
        for (const std::uint32_t layer : {0, 1, 255}) {
          first_numbers.insert((*KeyedRandom::of_example(seed, epoch, example, layer))());
          EXPECT_EQ((*KeyedRandom::of_example(seed, epoch, example, layer))(),
                    (*KeyedRandom::of_example(seed, epoch, example, layer))());
        }
  EXPECT_EQ(first_numbers.size(), 2u * 3 * 4 * 3);
  EXPECT_THROW(KeyedRandom::of_example(0, 1 << 24, 0), InvalidArgument);
  EXPECT_THROW(KeyedRandom::of_example(0, 0, std::uint64_t{1} << 40), InvalidArgument);
  EXPECT_THROW(KeyedRandom::of_example(0, 0, 0, 256), InvalidArgument);
}

TEST(KeyedRandom, EachUseOfATrialHasNumbersOfItsOwn) {
  constexpr std::uint32_t last = (1 << 24) - 1;
  std::set<std::uint64_t> first_numbers;
  for (const std::uint32_t trial : {0, 1})
    for (const std::uint32_t use : {std::uint32_t{0}, std::uint32_t{1}, last})
      first_numbers.insert((*KeyedRandom(7, trial, use))());
  EXPECT_EQ(first_numbers.size(), 2u * 3);
  EXPECT_THROW(KeyedRandom(7, 0, last + 1), InvalidArgument);
}

}  // namespace
}  // namespace cadre::base
