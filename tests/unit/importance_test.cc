#include "cadre/tune/importance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "cadre/error.h"
#include "cadre/tune/search_space.h"
#include "support/message_of.h"
#include "tune/searchers/variant_generator.h"

namespace cadre::tune {
namespace {

using test_support::message_of;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

Value sampled_value() { return 7; }

// Draws `count` trials from the space, each with the loss of its config.
std::vector<Result> trials(const Space& space, std::int64_t count, double (*loss)(const Config&)) {
  const VariantGenerator variants(space, {.num_samples = count, .seed = 5});
  std::vector<Result> trials;
  for (std::int64_t i = 0; i < variants.size(); ++i) {
    const Config config = variants(i).config;
    trials.push_back({.trial_id = std::to_string(i), .config = config, .drawn_config = config});
    trials.back().metrics = {{"loss", loss(config)}, {"score", -loss(config)}, {"constant", 1}};
  }
  return trials;
}

ResultGrid grid(const Space& space, std::vector<Result> results) {
  ExperimentSummary summary{.name = "mine", .options = {{"param_space", stored_form(space)}}, .metric = "loss"};
  summary.mode = Mode::min;
  return {"mine", std::move(results), summary};
}

std::vector<std::string> keys_of(const std::vector<Importance>& importances) {
  std::vector<std::string> keys;
  for (const Importance& one : importances) keys.push_back(one.key);
  return keys;
}

const Space two{{"weak", uniform(0, 1)}, {"strong", uniform(0, 1)}};
double loss_of_two(const Config& config) { return config.get<double>("strong") + config.get<double>("weak") / 100; }

TEST(Importances, TheMostImportantKeyIsFirstAndTheyAddUpToOne) {
  const std::vector<Importance> found = importances(grid(two, trials(two, 100, loss_of_two)));
  EXPECT_THAT(keys_of(found), ElementsAre("strong", "weak"));
  EXPECT_GT(found[0].importance, 0.8);
  EXPECT_NEAR(found[0].importance + found[1].importance, 1, 1e-12);
  EXPECT_EQ(found[0].num_trials, 100u);
}

TEST(Importances, EachKindOfDomainHasOneAndConstantsAndFunctionsHaveNone) {
  const Space space{{"uniform", uniform(0, 1)},
                    {"steps", quniform(0, 1, 0.1)},
                    {"lr", loguniform(1e-5, 1)},
                    {"normal", randn(0, 1)},
                    {"rounded", qrandn(0, 1, 0.5)},
                    {"integer", randint(0, 1000)},
                    {"layers", lograndint(1, 100)},
                    {"size", ordinal({"small", "large"})},
                    {"act", choice({"relu", "tanh"})},
                    {"grid", grid_search({1, 2})},
                    {"model", {{"width", randint(1, 9)}, {"sizes", list(randint(1, 9), 3)}}},
                    {"constant", 5},
                    {"function", fn<sampled_value>},
                    {"either", choice({1, fn<sampled_value>})}};
  const std::vector<Importance> found =
      importances(grid(space, trials(space, 100, [](const Config& config) { return config.get<double>("lr"); })));
  EXPECT_THAT(keys_of(found), UnorderedElementsAre("uniform", "steps", "lr", "normal", "rounded", "integer", "layers",
                                                   "size", "act", "grid", "model/width", "model/sizes/0"));
  EXPECT_EQ(found.front().key, "lr");
}

TEST(Importances, AConditionalKeyIsJudgedByTheTrialsThatHaveIt) {
  const Space space{{"optimizer", choice({"adam", Space{{"momentum", uniform(0, 1)}}})}, {"noise", uniform(0, 1)}};
  const auto found = importances(grid(space, trials(space, 300, [](const Config& config) {
                                        const Value* momentum = config.find("optimizer/momentum");
                                        return momentum == nullptr ? 0.5 : std::abs(momentum->get<double>() - 0.9);
                                      })));
  EXPECT_THAT(keys_of(found), ElementsAre("optimizer/momentum", "optimizer", "noise"));
  EXPECT_LT(found[0].num_trials, 200u);
  EXPECT_GT(found[0].num_trials, 100u);
  EXPECT_EQ(found[1].num_trials, 300u);
}

TEST(Importances, AKeyThatIsDrawnFromSeveralDomainsIsThereOnce) {
  const Space space{{"dropout", choice({0, uniform(0.1, 0.5)})}, {"noise", uniform(0, 1)}};
  const auto found =
      importances(grid(space, trials(space, 100, [](const Config& config) { return config.get<double>("dropout"); })));
  EXPECT_THAT(keys_of(found), ElementsAre("dropout", "noise"));
  EXPECT_EQ(found[0].num_trials, 100u);
}

TEST(Importances, AnotherMetricHasADirectionOfItsOwn) {
  const ResultGrid all = grid(two, trials(two, 100, loss_of_two));
  const double importance = importances(all).front().importance;
  EXPECT_DOUBLE_EQ(importances(all, {.metric = maximize("score")}).front().importance, importance);
  EXPECT_NE(importances(all, {.mode = Mode::max}).front().importance, importance);
  EXPECT_THAT(message_of<InvalidArgument>([&] { importances(all, {.metric = "score"}); }), HasSubstr("minimize"));
}

TEST(Importances, AskedKeysAreComparedWithEachOther) {
  const Space space{{"a", uniform(0, 1)}, {"b", uniform(0, 1)}, {"c", uniform(0, 1)}};
  const ResultGrid all = grid(space, trials(space, 100, [](const Config& config) { return config.get<double>("c"); }));
  const std::vector<Importance> found = importances(all, {.keys = {"b", "a"}});
  EXPECT_THAT(keys_of(found), UnorderedElementsAre("a", "b"));
  EXPECT_NEAR(found[0].importance + found[1].importance, 1, 1e-12);
  EXPECT_THAT(message_of<InvalidArgument>([&] { importances(all, {.keys = {"d", "a", "a"}}); }),
              ::testing::AllOf(HasSubstr("\"d\" is no hyper-parameter of the search space, which has: a, b, c"),
                               HasSubstr("\"a\" is there twice")));
}

TEST(Importances, TrialsWithExploitsOrWithoutAFiniteNumberDoNotCount) {
  std::vector<Result> some = trials(two, 100, loss_of_two);
  const std::vector<Importance> without = importances(grid(two, {some.begin(), some.begin() + 60}));
  for (std::size_t i = 60; i < 80; ++i) some[i].exploits.emplace_back();
  for (std::size_t i = 80; i < 90; ++i) some[i].metrics = {{"loss", std::nan("")}};
  for (std::size_t i = 90; i < 100; ++i) some[i].metrics = {};
  const std::vector<Importance> found = importances(grid(two, some));
  EXPECT_EQ(found[0].num_trials, 60u);
  EXPECT_DOUBLE_EQ(found[0].importance, without[0].importance);
}

TEST(Importances, ErrorsSayWhatToDo) {
  const std::vector<Result> many = trials(two, 20, loss_of_two);
  EXPECT_THAT(message_of<InvalidArgument>([&] { importances(grid(two, {many.begin(), many.begin() + 9})); }),
              HasSubstr("needs at least 10 trials with a finite number \"loss\", and mine has 9: run more trials"));
  std::vector<Result> exploited = many;
  for (std::size_t i = 0; i < 15; ++i) exploited[i].exploits.emplace_back();
  EXPECT_THAT(message_of<InvalidArgument>([&] { importances(grid(two, exploited)); }),
              HasSubstr("has 5; 15 whose configs exploits have changed do not count"));
  EXPECT_THAT(message_of<NotFound>([&] { importances(grid(two, many), {.metric = minimize("nothing")}); }),
              HasSubstr("has: loss, score, constant"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { importances(grid(two, many), {.metric = minimize("constant")}); }),
              HasSubstr("\"constant\" is as good in all 20"));
  for (const double quantile : {0.0, 1.0, -0.1, std::nan("")}) {
    EXPECT_THAT(message_of<InvalidArgument>([&] { importances(grid(two, many), {.quantile = quantile}); }),
                HasSubstr("above 0 and below 1"));
  }
  EXPECT_THAT(message_of<InvalidArgument>([&] { importances(ResultGrid("x", many, minimize("loss"))); }),
              HasSubstr("ResultGrid::from_directory"));
  const Space constants{{"a", 1}};
  EXPECT_THAT(message_of<InvalidArgument>([&] { importances(grid(constants, many)); }),
              HasSubstr("no hyper-parameter to compare"));
  const Space same{{"one", choice({1})}};
  std::vector<Result> alike = trials(same, 20, [](const Config&) { return 0.0; });
  for (std::size_t i = 0; i < alike.size(); ++i) alike[i].metrics = {{"loss", i}};
  EXPECT_THAT(message_of<InvalidArgument>([&] { importances(grid(same, alike)); }),
              HasSubstr("no hyper-parameter differs"));
}

}  // namespace
}  // namespace cadre::tune
