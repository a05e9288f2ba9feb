#include "tune/schedulers/explore.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace cadre::tune {
namespace {

// Explores many times, each time from the donor's config; counts the operations on one key and passes its values to
// `act`.
template <class Act>
std::map<std::string, int> explore_often(const PopulationBasedTraining& settings, const Config& donor,
                                         const std::string& key, Act act) {
  base::RandomStream random(3, 1, base::Purpose::explore);
  std::map<std::string, int> operations;
  for (int i = 0; i < 4000; ++i) {
    const Explored explored = explore(donor, settings, random);
    for (const Perturbation& made : explored.perturbations) {
      if (made.key == key) ++operations[made.operation];
    }
    act(explored.config.at(key));
  }
  return operations;
}

TEST(Explore, ANumberIsMultipliedOrDrawnAnew) {
  const PopulationBasedTraining settings{.hyperparam_mutations = {{"lr", uniform(0, 1)}}};
  std::set<double> multiplied;
  const auto operations = explore_often(settings, {{"lr", 0.5}}, "lr", [&](const Value& value) {
    if (value.get<double>() == 0.5 * 1.2 || value.get<double>() == 0.5 * 0.8) multiplied.insert(value.get<double>());
  });
  EXPECT_EQ(multiplied.size(), 2u);
  EXPECT_NEAR(operations.at("resample"), 1000, 120);
  EXPECT_NEAR(operations.at("* 1.2"), 1500, 150);
  EXPECT_NEAR(operations.at("* 0.8"), 1500, 150);
}

TEST(Explore, ANumberNeverLeavesItsDomain) {
  const PopulationBasedTraining settings{.hyperparam_mutations = {{"lr", uniform(0.1, 1)}}};
  for (const double start : {0.1, 0.11, 0.99, 1.0}) {
    explore_often(settings, {{"lr", start}}, "lr", [](const Value& value) {
      ASSERT_GE(value.get<double>(), 0.1);
      ASSERT_LE(value.get<double>(), 1.0);
    });
  }
}

TEST(Explore, AnIntegerStaysOneAndAlwaysMoves) {
  const PopulationBasedTraining settings{.hyperparam_mutations = {{"n", randint(1, 1000)}}, .resample_probability = 0};
  for (const std::int64_t start : {std::int64_t{2}, std::int64_t{3}, std::int64_t{100}}) {
    explore_often(settings, {{"n", start}}, "n", [&](const Value& value) {
      ASSERT_TRUE(value.is_integer());
      ASSERT_NE(value.get<std::int64_t>(), start);
    });
  }
}

TEST(Explore, AListValueMovesToANeighbourAndStopsAtTheEnds) {
  const PopulationBasedTraining settings{.hyperparam_mutations = {{"m", {0.8, 0.9, 0.99}}}, .resample_probability = 0};
  std::set<double> from_middle;
  explore_often(settings, {{"m", 0.9}}, "m", [&](const Value& value) { from_middle.insert(value.get<double>()); });
  EXPECT_EQ(from_middle, (std::set<double>{0.8, 0.99}));
  const auto operations = explore_often(settings, {{"m", 0.8}}, "m", [](const Value&) {});
  EXPECT_EQ(operations.size(), 2u);
  EXPECT_GT(operations.at("shift left (noop)"), 0);
  EXPECT_GT(operations.at("shift right"), 0);
}

TEST(Explore, AChoiceMovesLikeAListAndIsNoNumber) {
  const PopulationBasedTraining settings{.hyperparam_mutations = {{"act", choice({"relu", "tanh", "gelu"})}},
                                         .resample_probability = 0};
  std::set<std::string> seen;
  explore_often(settings, {{"act", "tanh"}}, "act", [&](const Value& value) { seen.insert(value.get<std::string>()); });
  EXPECT_EQ(seen, (std::set<std::string>{"relu", "gelu"}));
}

TEST(Explore, AValueThatIsNotInTheListIsDrawnAnew) {
  const PopulationBasedTraining settings{.hyperparam_mutations = {{"m", {0.8, 0.9}}}, .resample_probability = 0};
  const auto operations = explore_often(settings, {{"m", 0.123}}, "m", [](const Value&) {});
  EXPECT_EQ(operations, (std::map<std::string, int>{{"resample", 4000}}));
}

TEST(Explore, AnIntegerIsFoundInAListOfRealsAndARealStaysOne) {
  const PopulationBasedTraining shift{.hyperparam_mutations = {{"m", {4.0, 5.0, 6.0}}}, .resample_probability = 0};
  EXPECT_EQ(explore_often(shift, {{"m", 5}}, "m", [](const Value&) {}).count("resample"), 0u);
  const PopulationBasedTraining draw{.hyperparam_mutations = {{"n", randint(0, 100)}}, .resample_probability = 1};
  explore_often(draw, {{"n", 5.0}}, "n", [](const Value& value) { ASSERT_TRUE(value.is_double()); });
}

TEST(Explore, AMultipleOfAStepMovesByAtLeastOne) {
  const PopulationBasedTraining settings{
      .hyperparam_mutations = {{"n", qrandint(0, 64, 8)}, {"x", quniform(0, 1, 0.25)}}, .resample_probability = 0};
  std::set<std::int64_t> integers;
  std::set<double> reals;
  explore_often(settings, {{"n", 16}, {"x", 0.5}}, "n", [&](const Value& v) { integers.insert(v.get<int>()); });
  explore_often(settings, {{"n", 16}, {"x", 0.5}}, "x", [&](const Value& v) { reals.insert(v.get<double>()); });
  EXPECT_EQ(integers, (std::set<std::int64_t>{8, 24}));
  EXPECT_EQ(reals, (std::set<double>{0.25, 0.75}));
}

TEST(Explore, ANumberThatLeavesItsDomainGoesWhereTheBoundsSay) {
  const auto values = [](Bounds bounds) {
    const PopulationBasedTraining settings{
        .hyperparam_mutations = {{"lr", uniform(0, 1)}}, .bounds = bounds, .resample_probability = 0};
    std::set<double> seen;
    explore_often(settings, {{"lr", 1.0}}, "lr", [&](const Value& value) { seen.insert(value.get<double>()); });
    return seen;
  };
  EXPECT_EQ(values(Bounds::clip), (std::set<double>{0.8, 1.0}));
  EXPECT_EQ(values(Bounds::reflect), (std::set<double>{0.8}));
  EXPECT_EQ(values(Bounds::unbounded), (std::set<double>{0.8, 1.2}));
}

TEST(Explore, AnOrdinalMovesToANeighbour) {
  const PopulationBasedTraining settings{.hyperparam_mutations = {{"size", ordinal({"s", "m", "l"})}},
                                         .resample_probability = 0};
  std::set<std::string> seen;
  explore_often(settings, {{"size", "s"}}, "size", [&](const Value& value) { seen.insert(value.get<std::string>()); });
  EXPECT_EQ(seen, (std::set<std::string>{"s", "m"}));
}

double ten_times_width(const Config& config) { return 10 * config.get<double>("width"); }

TEST(Explore, AFunctionGivesNewValuesAndSeesTheDonor) {
  const PopulationBasedTraining settings{.hyperparam_mutations = {{"height", fn<ten_times_width>}}};
  std::set<double> seen;
  const auto operations = explore_often(settings, {{"width", 3}, {"height", 1.0}}, "height",
                                        [&](const Value& value) { seen.insert(value.get<double>()); });
  EXPECT_EQ(seen, (std::set<double>{30, 1.2, 0.8}));
  EXPECT_NEAR(operations.at("resample"), 1000, 120);
}

TEST(Explore, AKeyThatTheDonorDoesNotHaveIsPassedOver) {
  const PopulationBasedTraining settings{
      .hyperparam_mutations = {{"opt", {{"momentum", uniform(0, 1)}, {"lr", uniform(0, 1)}}}}};
  base::RandomStream random(3, 1, base::Purpose::explore);
  const Explored explored = explore({{"opt", {{"lr", 0.5}}}}, settings, random);
  EXPECT_FALSE(explored.config.contains("opt/momentum"));
  ASSERT_EQ(explored.perturbations.size(), 1u);
  EXPECT_EQ(explored.perturbations[0].key, "opt/lr");
}

Config keep_the_product(Config config) {
  config.set("b", 1 / config.get<double>("a"));
  return config;
}

TEST(Explore, TheCustomFunctionHasTheLastWord) {
  const PopulationBasedTraining settings{.hyperparam_mutations = {{"a", uniform(0, 1)}},
                                         .custom_explore_fn = fn<keep_the_product>};
  base::RandomStream random(3, 1, base::Purpose::explore);
  const Explored explored = explore({{"a", 0.5}, {"b", 2.0}}, settings, random);
  EXPECT_EQ(explored.config.get<double>("b"), 1 / explored.config.get<double>("a"));
  ASSERT_EQ(explored.perturbations.size(), 2u);
  EXPECT_EQ(explored.perturbations[1].key, "b");
  EXPECT_EQ(explored.perturbations[1].operation, "custom_explore_fn");
}

TEST(Explore, KeysWithoutMutationAreTheDonorsAndNestedOnesAreReached) {
  const PopulationBasedTraining settings{
      .hyperparam_mutations = {{"opt", {{"lr", uniform(0, 1)}, {"beta", {0.8, 0.9}}}}}};
  const Config donor{{"opt", {{"lr", 0.5}, {"beta", 0.8}, {"name", "sgd"}}}, {"epochs", 3}};
  base::RandomStream random(3, 1, base::Purpose::explore);
  const Explored explored = explore(donor, settings, random);
  EXPECT_EQ(explored.config.get<std::string>("opt/name"), "sgd");
  EXPECT_EQ(explored.config.get<int>("epochs"), 3);
  ASSERT_EQ(explored.perturbations.size(), 2u);
  EXPECT_EQ(explored.perturbations[0].key, "opt/lr");
  EXPECT_EQ(explored.perturbations[1].key, "opt/beta");
}

}  // namespace
}  // namespace cadre::tune
