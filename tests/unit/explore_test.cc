#include "tune/explore.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace cadre::tune {
namespace {

// Explores many times, each from the donor's config; counts the operations of one key and passes on its values.
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
