#include "tune/domain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace cadre::tune {
namespace {

using ::testing::HasSubstr;

class DomainSamples : public ::testing::Test {
 protected:
  // Calls `act` with many values of the domain.
  template <class Act>
  void for_samples(const Domain& domain, Act act) {
    for (int i = 0; i < 20'000; ++i) act(sample(domain, random_));
  }
  base::RandomStream random_{1, 0, base::Purpose::search_space};
};

TEST_F(DomainSamples, UniformFillsItsHalfOpenInterval) {
  double lowest = 1;
  double highest = -1;
  for_samples(uniform(-0.5, 0.5), [&](const Value& value) {
    lowest = std::min(lowest, value.get<double>());
    highest = std::max(highest, value.get<double>());
  });
  EXPECT_GE(lowest, -0.5);
  EXPECT_LT(lowest, -0.499);
  EXPECT_LT(highest, 0.5);
  EXPECT_GT(highest, 0.499);
}

TEST_F(DomainSamples, LoguniformIsUniformInItsLogarithm) {
  int below_middle = 0;
  for_samples(loguniform(1e-6, 1), [&](const Value& value) {
    ASSERT_GE(value.get<double>(), 1e-6);
    ASSERT_LT(value.get<double>(), 1);
    below_middle += value.get<double>() < 1e-3 ? 1 : 0;
  });
  EXPECT_NEAR(below_middle, 10'000, 400);
}

TEST_F(DomainSamples, RandintGivesEveryIntegerButTheUpperBound) {
  std::set<std::int64_t> seen;
  for_samples(randint(-2, 3), [&](const Value& value) { seen.insert(value.get<std::int64_t>()); });
  EXPECT_EQ(seen, (std::set<std::int64_t>{-2, -1, 0, 1, 2}));
}

TEST_F(DomainSamples, ChoiceGivesEveryOptionWithItsType) {
  std::set<std::string> seen;
  for_samples(choice({"relu", 3, 0.5}), [&](const Value& value) { seen.insert(to_json(value)); });
  EXPECT_EQ(seen, (std::set<std::string>{"\"relu\"", "3", "0.5"}));
}

TEST_F(DomainSamples, ANarrowIntervalNeverRoundsOutOfItself) {
  const double next = std::nextafter(1.0, 2.0);
  for_samples(uniform(1.0, next), [&](const Value& value) { ASSERT_EQ(value.get<double>(), 1.0); });
}

TEST(DomainClip, NumbersReturnToTheNearestBound) {
  EXPECT_EQ(clip(uniform(0, 1), 1.7), Value(1.0));
  EXPECT_EQ(clip(uniform(0, 1), -3), Value(0));
  EXPECT_EQ(clip(loguniform(0.1, 1), 0.5), Value(0.5));
  EXPECT_EQ(clip(randint(2, 6), 9), Value(5));
  EXPECT_EQ(clip(randint(2, 6), 0), Value(2));
  EXPECT_EQ(clip(uniform(0.5, 9.5), 11), Value(9));  // an integer stays one
}

TEST(DomainFault, SaysWhatIsWrong) {
  EXPECT_EQ(fault_of(uniform(0, 1)), "");
  EXPECT_THAT(fault_of(uniform(1, 0)), HasSubstr("1.0 is not below its upper bound 0.0"));
  EXPECT_THAT(fault_of(uniform(0, std::numeric_limits<double>::infinity())), HasSubstr("not both finite"));
  EXPECT_THAT(fault_of(uniform(std::nan(""), 1)), HasSubstr("not both finite"));
  EXPECT_THAT(fault_of(loguniform(0, 1)), HasSubstr("no logarithm"));
  EXPECT_THAT(fault_of(randint(3, 3)), HasSubstr("not included"));
  EXPECT_THAT(fault_of(randint(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max())),
              HasSubstr("2^53"));
  EXPECT_THAT(fault_of(choice(List{})), HasSubstr("no options"));
}

}  // namespace
}  // namespace cadre::tune
