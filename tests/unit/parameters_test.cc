#include "cadre/tune/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/normal_distribution.h"
#include "cadre/error.h"
#include "support/message_of.h"
#include "tune/domain.h"

namespace cadre::tune {
namespace {

using test_support::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Value any_value() { return 1; }

const std::vector<Domain> all_domains{uniform(-2, 3),
                                      quniform(-0.25, 0.6, 0.1),
                                      loguniform(1e-5, 10),
                                      qloguniform(0.5, 8, 0.5),
                                      randn(3, 2),
                                      qrandn(3, 2, 0.5),
                                      randint(-3, 4),
                                      randint(std::int64_t{1} << 60, (std::int64_t{1} << 60) + 10),
                                      qrandint(-7, 20, 3),
                                      lograndint(1, 40),
                                      qlograndint(2, 64, 2),
                                      ordinal({"small", "medium", 5}),
                                      choice({1, 2, 4, "none"})};

class OfEachDomain : public ::testing::TestWithParam<Domain> {
 protected:
  Domain domain_ = GetParam();
  Parameters parameters_{{{"x", domain_}}};

  Value value_at(double coordinate) const { return parameters_.config_of({coordinate}).at("x"); }
};

INSTANTIATE_TEST_SUITE_P(Parameters, OfEachDomain, ::testing::ValuesIn(all_domains));

TEST_P(OfEachDomain, ACoordinateBecomesAValueOfTheDomainAndBack) {
  for (int i = 0; i < 1000; ++i) {
    const Point point = parameters_.settled({(i + 0.5) / 1000});
    const Config config = parameters_.config_of(point);
    ASSERT_TRUE(contains(SpaceEntry(domain_), config.at("x"))) << to_json(config.at("x"));
    const std::optional<Point> back = parameters_.point_of(config);
    ASSERT_TRUE(back);
    ASSERT_NEAR((*back)[0], point[0], 1e-9) << to_json(config.at("x"));
  }
}

TEST_P(OfEachDomain, CellsFollowEachOtherAndGiveOneValueEach) {
  if (!parameters_[0].is_discrete()) return;
  std::int64_t cells = 0;
  for (double begin = 0; begin < 1 - 1e-9; ++cells) {
    const Parameter::Cell cell = parameters_[0].cell(begin + 1e-12);
    ASSERT_NEAR(cell.begin, begin, 1e-9);
    ASSERT_GT(cell.end, cell.begin);
    ASSERT_EQ(value_at(cell.middle()), value_at(cell.begin + (cell.end - cell.begin) * 0.01));
    ASSERT_EQ(value_at(cell.middle()), value_at(cell.end - (cell.end - cell.begin) * 0.01));
    begin = cell.end;
  }
  if (parameters_[0].num_values > 0) {
    EXPECT_EQ(cells, parameters_[0].num_values);
  }
}

TEST_P(OfEachDomain, UniformCoordinatesAreDistributedAsDrawsAre) {
  if (!value_at(0.5).is_number() || std::holds_alternative<Choice>(domain_)) return;
  base::RandomStream random(1, 0, base::Purpose::search_space);
  double drawn = 0;
  double placed = 0;
  constexpr int count = 20'000;
  for (int i = 0; i < count; ++i) {
    drawn += std::get<Value>(sample(domain_, random).data()).get<double>() / count;
    placed += value_at((i + 0.5) / count).get<double>() / count;
  }
  EXPECT_NEAR(drawn, placed, 0.03 * (std::abs(placed) + 1));
}

TEST(Parameters, CoordinatesAreQuantiles) {
  const Parameters parameters({{"lr", loguniform(1e-4, 1)}, {"noise", randn(1, 2)}, {"width", randint(0, 4)}});
  const Config config = parameters.config_of({0.5, base::normal_probability(1), 0.76});
  EXPECT_NEAR(config.get<double>("lr"), 1e-2, 1e-12);
  EXPECT_NEAR(config.get<double>("noise"), 3, 1e-12);
  EXPECT_EQ(config.get<std::int64_t>("width"), 3);
}

TEST(Parameters, ValuesAreNamedByTheirPaths) {
  const Parameters parameters({{"epochs", 5},
                               {"model", {{"width", randint(1, 9)}, {"act", "relu"}}},
                               {"sizes", list(randint(0, 2), 7, randint(0, 2))}});
  EXPECT_EQ(parameters[0].path, "model/width");
  EXPECT_EQ(parameters[1].path, "sizes/0");
  EXPECT_EQ(parameters[2].path, "sizes/2");
  const Config config = parameters.config_of({0.99, 0.1, 0.9});
  EXPECT_EQ(config, (Config{{"model/width", 8}, {"sizes", list(0, 7, 1)}}));
}

TEST(Parameters, ParametersOfAnOptionExistOnlyWithIt) {
  const Parameters parameters(
      {{"optimizer", choice({"sgd", Space{{"name", "adam"}, {"beta", uniform(0, 1)}}, uniform(5, 6)})}});
  ASSERT_EQ(parameters.size(), 3U);
  EXPECT_EQ(parameters[1].condition, (Parameter::Condition{0, 1}));
  EXPECT_EQ(parameters[1].path, "optimizer/beta");
  const Point sgd = parameters.settled({0.1, 0.5, 0.5});
  EXPECT_TRUE(std::isnan(sgd[1]) && std::isnan(sgd[2]));
  EXPECT_EQ(parameters.config_of(sgd), (Config{{"optimizer", "sgd"}}));
  const Point adam = parameters.settled({0.5, 0.25, 0.5});
  EXPECT_EQ(parameters.config_of(adam), (Config{{"optimizer", Dict{{"name", "adam"}, {"beta", 0.25}}}}));
  const std::optional<Point> back = parameters.point_of(parameters.config_of(adam));
  ASSERT_TRUE(back);
  EXPECT_EQ((*back)[0], 0.5);
  EXPECT_EQ((*back)[1], 0.25);
  EXPECT_TRUE(std::isnan((*back)[2]));
  EXPECT_EQ((*parameters.point_of({{"optimizer", 5.5}}))[2], 0.5);
}

TEST(Parameters, AConfigOfAnotherSpaceHasNoPoint) {
  const Parameters parameters({{"lr", uniform(0, 1)}, {"act", choice({"relu", "tanh"})}});
  EXPECT_TRUE(parameters.point_of({{"act", "tanh"}, {"lr", 0}, {"more", 3}}));
  EXPECT_FALSE(parameters.point_of({{"lr", 0.5}}));
  EXPECT_FALSE(parameters.point_of({{"lr", 1.5}, {"act", "tanh"}}));
  EXPECT_FALSE(parameters.point_of({{"lr", 0.5}, {"act", "gelu"}}));
}

TEST(Parameters, WhatCannotBeChosenIsRefused) {
  EXPECT_THAT(message_of<InvalidArgument>([] { Parameters({{"m", {{"lr", grid_search({1, 2})}}}}); }),
              HasSubstr("\"m/lr\" is a grid"));
  EXPECT_THAT(message_of<InvalidArgument>([] { Parameters({{"m", choice({Space{{"f", fn<any_value>}}, 2})}}); }),
              HasSubstr("\"m/f\" has the function"));
  EXPECT_THAT(message_of<InvalidArgument>([] { Parameters({{"m", list(uniform(0, 1), fn<any_value>)}}); }),
              HasSubstr("\"m\" is a list of both"));
  EXPECT_EQ(Parameters({{"f", fn<any_value>}, {"l", list(1, fn<any_value>)}}).size(), 0U);
}

TEST(NormalDistribution, IsAccurateInBothTails) {
  for (const double value : {-8.0, -3.0, -0.5, 0.0, 2.0, 5.0})
    EXPECT_NEAR(base::normal_quantile(base::normal_probability(value)), value, 1e-9);
  // Values of SciPy's norm.logcdf.
  EXPECT_NEAR(base::log_normal_probability(-10), -53.23128515051247, 1e-10);
  EXPECT_NEAR(base::log_normal_probability(-25), -316.63940800802026, 1e-9);
  EXPECT_NEAR(base::log_normal_probability(-40), -804.6084420137538, 1e-9);
  EXPECT_NEAR(base::log_normal_probability(3), -0.0013508099647481923, 1e-15);
}

}  // namespace
}  // namespace cadre::tune
