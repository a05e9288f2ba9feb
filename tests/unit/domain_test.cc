#include "tune/domain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace cadre::tune {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;

// Matches counts within 400 of `count`.
auto near(int count) { return ::testing::AllOf(::testing::Gt(count - 400), ::testing::Lt(count + 400)); }

class DomainSamples : public ::testing::Test {
 protected:
  // Calls `act` with many values of the domain.
  template <class Act>
  void for_samples(const Domain& domain, Act act) {
    for (int i = 0; i < 20'000; ++i) act(std::get<Value>(sample(domain, random_).data()));
  }
  std::map<std::string, int> count_samples(const Domain& domain) {
    std::map<std::string, int> counts;
    for_samples(domain, [&](const Value& value) { ++counts[to_json(value)]; });
    return counts;
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

TEST_F(DomainSamples, MultiplesIncludeBothEndsWithTheirFullShare) {
  const auto thirds = count_samples(quniform(0.1, 0.3, 0.1));
  EXPECT_THAT(thirds, ::testing::UnorderedElementsAre(Pair("0.1", near(6'667)), Pair("0.2", near(6'667)),
                                                      Pair("0.3", near(6'667))));
  EXPECT_THAT(count_samples(qrandint(1, 10, 3)),
              ::testing::UnorderedElementsAre(Pair("3", near(6'667)), Pair("6", near(6'667)), Pair("9", near(6'667))));
  EXPECT_THAT(
      count_samples(qrandint(-5, -3)),
      ::testing::UnorderedElementsAre(Pair("-5", near(6'667)), Pair("-4", near(6'667)), Pair("-3", near(6'667))));
  EXPECT_THAT(count_samples(qrandint(-5, 5, 4)),
              ::testing::UnorderedElementsAre(Pair("-4", near(6'667)), Pair("0", near(6'667)), Pair("4", near(6'667))));
}

TEST_F(DomainSamples, LogarithmicIntegersAndMultiplesHaveTheShareOfTheirIntervals) {
  // Shares: log(2 / 1), log(3 / 2) and log(4 / 3) of log(4 / 1).
  EXPECT_THAT(count_samples(lograndint(1, 4)),
              ::testing::UnorderedElementsAre(Pair("1", near(10'000)), Pair("2", near(5'850)), Pair("3", near(4'150))));
  // Shares: log(1.5 / 0.5) and log(2.5 / 1.5) of log(2.5 / 0.5).
  EXPECT_THAT(count_samples(qlograndint(10, 20, 10)),
              ::testing::UnorderedElementsAre(Pair("10", near(13'652)), Pair("20", near(6'348))));
  EXPECT_THAT(count_samples(qloguniform(0.5, 1, 0.5)),
              ::testing::UnorderedElementsAre(Pair("0.5", near(13'652)), Pair("1.0", near(6'348))));
}

// A billionth of a step above 0 is far enough from it for a logarithm.
TEST_F(DomainSamples, ALogarithmicDomainHasNoMultipleAtZero) {
  const Domain reals = qloguniform(1e-10, 1, 0.5);
  EXPECT_THAT(count_samples(reals),
              ::testing::UnorderedElementsAre(Pair("0.5", near(13'652)), Pair("1.0", near(6'348))));
  EXPECT_EQ(count_values(reals), 2);
  EXPECT_EQ(std::get<Value>(at_quantile(reals, 0).data()), Value(0.5));
  EXPECT_EQ(quantiles_of(reals, 0.5).begin, 0);
  EXPECT_EQ(keep_inside(reals, 0.1, Bounds::clip), Value(0.5));
  EXPECT_THAT(count_samples(qlograndint(1, 4'000'000'000, 2'000'000'000)),
              ::testing::UnorderedElementsAre(Pair("2000000000", near(13'652)), Pair("4000000000", near(6'348))));
  EXPECT_THAT(fault_of(qloguniform(1e-10, 0.4, 0.5)), HasSubstr("no multiple of its q 0.5"));
}

TEST_F(DomainSamples, NormalNumbersHaveTheirMeanAndDeviation) {
  double sum = 0;
  double squares = 0;
  for_samples(randn(10, 2), [&](const Value& value) {
    sum += value.get<double>();
    squares += value.get<double>() * value.get<double>();
  });
  const double mean = sum / 20'000;
  EXPECT_NEAR(mean, 10, 0.06);
  EXPECT_NEAR(std::sqrt(squares / 20'000 - mean * mean), 2, 0.05);
  for_samples(qrandn(0, 3, 0.5),
              [&](const Value& value) { ASSERT_EQ(value.get<double>() * 2, std::round(value.get<double>() * 2)); });
}

TEST_F(DomainSamples, OrdinalGivesEveryOption) { EXPECT_EQ(count_samples(ordinal({"small", "large"})).size(), 2u); }

TEST(DomainKeepInside, ClippedNumbersGoToTheNearestBound) {
  const auto clip = [](const Domain& domain, const Value& value) { return keep_inside(domain, value, Bounds::clip); };
  EXPECT_EQ(clip(uniform(0, 1), 1.7), Value(1.0));
  EXPECT_EQ(clip(uniform(0, 1), -3), Value(0));
  EXPECT_EQ(clip(loguniform(0.1, 1), 0.5), Value(0.5));
  EXPECT_EQ(clip(randint(2, 6), 9), Value(5));
  EXPECT_EQ(clip(randint(2, 6), 0), Value(2));
  EXPECT_EQ(clip(uniform(0.5, 9.5), 11), Value(9));  // an integer stays an integer
  EXPECT_EQ(clip(qrandint(2, 6, 2), 9), Value(6));   // with a q the upper bound is included
  EXPECT_EQ(clip(quniform(0, 1, 0.1), 0.33), Value(0.3));
  EXPECT_EQ(clip(quniform(0.25, 1, 0.1), 0.01), Value(0.3));  // the lowest multiple
  EXPECT_EQ(clip(randn(0, 1), 1e9), Value(1e9));
  EXPECT_EQ(clip(ordinal({1, 2}), 7), Value(7));
}

TEST(DomainKeepInside, ReflectedNumbersComeBackAsFarAsTheyWereOutside) {
  const auto reflect = [](const Domain& domain, const Value& value) {
    return keep_inside(domain, value, Bounds::reflect).get<double>();
  };
  EXPECT_DOUBLE_EQ(reflect(uniform(0, 1), 1.25), 0.75);
  EXPECT_DOUBLE_EQ(reflect(uniform(0, 1), -0.25), 0.25);
  EXPECT_DOUBLE_EQ(reflect(uniform(0, 1), 2.25), 0.25);  // and reflected again at the other end
  EXPECT_DOUBLE_EQ(reflect(loguniform(0.01, 1), 10.0), 0.1);
  EXPECT_DOUBLE_EQ(reflect(randint(0, 10), 11), 7);  // the highest is 9
  EXPECT_DOUBLE_EQ(reflect(uniform(0, 1), 0.5), 0.5);
}

TEST(DomainKeepInside, UnboundedNumbersStayOutsideButOnTheirMultiples) {
  EXPECT_EQ(keep_inside(uniform(0, 1), 1.7, Bounds::unbounded), Value(1.7));
  EXPECT_EQ(keep_inside(randint(0, 4), 17, Bounds::unbounded), Value(17));
  EXPECT_EQ(keep_inside(qrandint(0, 4, 4), 17, Bounds::unbounded), Value(16));
}

TEST(DomainKeepInside, HalfWayBetweenMultiplesIsTheEvenOne) {
  EXPECT_EQ(keep_inside(quniform(0, 10, 0.5), 1.25, Bounds::clip), Value(1.0));
  EXPECT_EQ(keep_inside(quniform(0, 10, 0.5), 1.75, Bounds::clip), Value(2.0));
  EXPECT_EQ(keep_inside(qrandint(0, 10, 2), 5, Bounds::clip), Value(4));
}

TEST(DomainKeepInside, AMultipleIsWhatPeopleWrite) {
  EXPECT_EQ(to_json(keep_inside(quniform(-3, 3, 0.3), 0.9, Bounds::clip)), "0.9");
  EXPECT_EQ(to_json(keep_inside(quniform(-3, 3, 0.15), 0.46, Bounds::clip)), "0.45");
  EXPECT_EQ(to_json(keep_inside(qrandn(0, 1, 1e-5), 3e-5, Bounds::clip)), "3e-05");
  EXPECT_EQ(to_json(keep_inside(qrandn(0, 1, 0.5), -0.1, Bounds::clip)), "0.0");
}

TEST(DomainKeepInside, AnIntegerNextToADomainWithoutIntegersStaysOne) {
  EXPECT_EQ(keep_inside(uniform(0.3, 0.8), 4, Bounds::clip), Value(1));
  EXPECT_EQ(keep_inside(uniform(0.1, 0.4), -4, Bounds::clip), Value(0));
}

TEST(DomainContains, ConstantsOptionsAndNestedSpaces) {
  EXPECT_TRUE(contains(choice({1, {{"a", uniform(0, 1)}}}), Dict{{"a", 0.5}}));
  EXPECT_FALSE(contains(choice({1, {{"a", uniform(0, 1)}}}), Dict{{"b", 0.5}}));
  EXPECT_FALSE(contains(choice({1, {{"a", uniform(0, 1)}}}), Dict{{"a", 0.5}, {"b", 1}}));
  EXPECT_TRUE(contains(list(randint(0, 3), 7), list(2, 7)));
  EXPECT_FALSE(contains(list(randint(0, 3), 7), list(2)));
  EXPECT_TRUE(contains(randn(), -1e9));
  EXPECT_FALSE(contains(uniform(0, 1), "0.5"));
  EXPECT_TRUE(contains(SampleFrom{"f"}, "anything"));
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
  EXPECT_THAT(fault_of(ordinal(List{})), HasSubstr("no options"));
  EXPECT_THAT(fault_of(quniform(0.1, 0.2, 0.5)), HasSubstr("no multiple of its q 0.5 from 0.1 to 0.2"));
  EXPECT_THAT(fault_of(quniform(0, 1, -1)), HasSubstr("q -1.0 is not 0 or more"));
  EXPECT_EQ(fault_of(quniform(1, 1, 1)), "");
  EXPECT_THAT(fault_of(randn(0, 0)), HasSubstr("standard deviation 0.0 is not above 0"));
  EXPECT_THAT(fault_of(lograndint(0, 3)), HasSubstr("no logarithm"));
  EXPECT_THAT(fault_of(qrandint(4, 5, 3)), HasSubstr("no multiple"));
}

// Each of them would give the same number, or none, at every draw.
TEST(DomainFault, BoundsWhoseDifferenceNoNumberHoldsAreRefused) {
  EXPECT_THAT(fault_of(uniform(-1e308, 1e308)), HasSubstr("-1e+308 and 1e+308 are further apart than the greatest"));
  EXPECT_EQ(fault_of(uniform(0, 1e308)), "");
  EXPECT_THAT(fault_of(quniform(1e308, 1.1e308, 0.1)), HasSubstr("more than 2^53 multiples of its q apart"));
  EXPECT_THAT(fault_of(quniform(-1e308, 1e308, 1)), HasSubstr("more than 2^53 multiples of its q apart"));
  EXPECT_THAT(fault_of(randn(0, 1e308)), HasSubstr("standard deviation 1e+308 give numbers that are greater"));
  EXPECT_EQ(fault_of(randn(1e300, 1e300)), "");
}

}  // namespace
}  // namespace cadre::tune
