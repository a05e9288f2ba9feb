#include "tune/searchers/variant_generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/checksum.h"
#include "base/random.h"

namespace cadre::tune {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Space kSpace = {{"lr", uniform(0.001, 1)},
                      {"epochs", 5},
                      {"model", {{"width", randint(1, 100)}, {"act", choice({"relu", "tanh"})}}}};

Variant first_variant(const Space& space, std::uint64_t seed = 1, std::int64_t trial = 0) {
  return VariantGenerator(space, {.num_samples = trial + 1, .seed = seed})(trial);
}

// Returns the values of one key in all trials.
std::vector<std::string> values_of(const VariantGenerator& variants, const std::string& key) {
  std::vector<std::string> values;
  for (std::int64_t trial = 0; trial < variants.size(); ++trial) {
    const Config config = variants(trial).config;
    values.push_back(config.contains(key) ? to_json(config.at(key)) : "-");
  }
  return values;
}

TEST(VariantGenerator, DrawsDomainsAndKeepsConstantsAtAnyDepth) {
  const Variant variant = first_variant(kSpace);
  EXPECT_EQ(variant.config.get<int>("epochs"), 5);
  EXPECT_TRUE(variant.config.at("model/width").is_integer());
  ASSERT_EQ(variant.sampled.size(), 3u);
  EXPECT_EQ(variant.sampled[1].first, "model/width");
  EXPECT_EQ(variant.sampled[1].second, variant.config.at("model/width"));
}

TEST(VariantGenerator, ATrialsConfigDependsOnItsIndexAndTheSeedOnly) {
  EXPECT_EQ(first_variant(kSpace, 1, 7).config, first_variant(kSpace, 1, 7).config);
  EXPECT_FALSE(first_variant(kSpace, 1, 7).config == first_variant(kSpace, 1, 8).config);
  EXPECT_FALSE(first_variant(kSpace, 1, 7).config == first_variant(kSpace, 2, 7).config);
}

TEST(VariantGenerator, AnotherKeyChangesNoneOfTheOthers) {
  Space more = kSpace;
  more.emplace(more.begin(), "momentum", uniform(0, 1));
  EXPECT_EQ(first_variant(more).config.at("lr"), first_variant(kSpace).config.at("lr"));
  EXPECT_EQ(first_variant(more).config.at("model"), first_variant(kSpace).config.at("model"));
}

// The example is from the reference's appendix B.3.
TEST(VariantGenerator, TheFirstGridByPathVariesFastestAndEverySampleHasAll) {
  const VariantGenerator variants(
      {{"b", grid_search({"x", "y", "z"})}, {"a", grid_search({1, 2})}, {"c", {{"d", uniform(0, 1)}}}},
      {.num_samples = 2});
  ASSERT_EQ(variants.size(), 12);
  EXPECT_THAT(values_of(variants, "a"), ElementsAre("1", "2", "1", "2", "1", "2", "1", "2", "1", "2", "1", "2"));
  EXPECT_THAT(values_of(variants, "b"), ElementsAre("\"x\"", "\"x\"", "\"y\"", "\"y\"", "\"z\"", "\"z\"", "\"x\"",
                                                    "\"x\"", "\"y\"", "\"y\"", "\"z\"", "\"z\""));
  const std::vector<std::string> drawn = values_of(variants, "c/d");
  EXPECT_EQ(std::set(drawn.begin(), drawn.end()).size(), 12u);
}

TEST(VariantGenerator, WithConstantGridSearchAllTrialsOfASampleHaveTheSameDraws) {
  const VariantGenerator variants({{"a", grid_search({1, {{"inner", uniform(0, 1)}}})}, {"b", uniform(0, 1)}},
                                  {.num_samples = 2, .constant_grid_search = true});
  const std::vector<std::string> drawn = values_of(variants, "b");
  ASSERT_EQ(drawn.size(), 4u);
  EXPECT_EQ(drawn[0], drawn[1]);
  EXPECT_EQ(drawn[2], drawn[3]);
  EXPECT_NE(drawn[0], drawn[2]);
}

TEST(VariantGenerator, AGridInsideAnOptionMultipliesThatOptionOnly) {
  const VariantGenerator variants(
      {{"opt", grid_search({{{"type", "sgd"}, {"momentum", grid_search({0.5, 0.9})}}, {{"type", "adam"}}})},
       {"x", grid_search({1, 2})}},
      {});
  EXPECT_EQ(variants.size(), 6);
  EXPECT_THAT(values_of(variants, "opt/momentum"), ElementsAre("0.5", "0.9", "-", "0.5", "0.9", "-"));
  EXPECT_THAT(values_of(variants, "x"), ElementsAre("1", "1", "1", "2", "2", "2"));
}

TEST(VariantGenerator, AConditionalSpaceHasOnlyTheKeysOfItsOption) {
  const VariantGenerator variants(
      {{"opt", choice({{{"type", "sgd"}, {"momentum", uniform(0, 1)}}, {{"type", "adam"}}})}}, {.num_samples = 50});
  int with_momentum = 0;
  for (std::int64_t trial = 0; trial < variants.size(); ++trial) {
    const Variant variant = variants(trial);
    const bool is_sgd = variant.config.get<std::string>("opt/type") == "sgd";
    EXPECT_EQ(variant.config.contains("opt/momentum"), is_sgd);
    EXPECT_EQ(variant.sampled.size(), is_sgd ? 2u : 1u);
    EXPECT_EQ(variant.sampled[0].first, "opt/type");
    with_momentum += is_sgd ? 1 : 0;
  }
  EXPECT_GT(with_momentum, 10);
  EXPECT_LT(with_momentum, 40);
}

// The example is from the reference's section on presets.
TEST(VariantGenerator, PointsToEvaluateComeFirstAndTheirGridsAreSearched) {
  const VariantGenerator variants(
      {{"a", grid_search({1, 2})}, {"b", randint(0, 100)}},
      {.num_samples = 4, .points_to_evaluate = {{{"a", 2}, {"b", 2}}, {{"a", 1}}, {{"b", 2}}}});
  ASSERT_EQ(variants.size(), 6);
  EXPECT_THAT(values_of(variants, "a"), ElementsAre("2", "1", "1", "2", "1", "2"));
  EXPECT_THAT(values_of(variants, "b"), ElementsAre("2", _, "2", "2", _, _));
  EXPECT_EQ(variants(0).sampled.size(), 2u);
}

TEST(VariantGenerator, AllPointsAreTakenWhereThereAreMoreThanSamples) {
  const VariantGenerator variants({{"b", randint(0, 100)}},
                                  {.num_samples = 1, .points_to_evaluate = {{{"b", 5}}, {{"b", 6}}, {{"b", 7}}}});
  EXPECT_THAT(values_of(variants, "b"), ElementsAre("5", "6", "7"));
}

TEST(VariantGenerator, ItemsOfAListAreDrawnEach) {
  const Variant variant = first_variant({{"layers", list(randint(0, 1000), randint(0, 1000), 7)}});
  const List& layers = variant.config.at("layers").items();
  EXPECT_NE(layers[0], layers[1]);
  EXPECT_EQ(layers[2], Value(7));
  ASSERT_EQ(variant.sampled.size(), 1u);
  EXPECT_EQ(variant.sampled[0], Dict::value_type("layers", layers));
}

double twice_the_width(const Config& config) { return 2 * config.get<double>("width"); }
std::string name_of_height(const Config& config) { return "h" + to_json(config.at("height")); }
std::int64_t own_draw(const Config&, Random& random) { return static_cast<std::int64_t>(random.below(1000)); }
double impossible(const Config& config) { return config.get<double>("missing"); }

TEST(VariantGenerator, FunctionsSeeWhatIsDrawnAndTheFunctionsBeforeThem) {
  const Space space = {
      {"height", fn<twice_the_width>}, {"name", fn<name_of_height>}, {"own", fn<own_draw>}, {"width", randint(1, 100)}};
  const Variant variant = first_variant(space);
  EXPECT_EQ(variant.fault, "");
  EXPECT_EQ(variant.config.get<double>("height"), 2 * variant.config.get<double>("width"));
  EXPECT_EQ(variant.config.get<std::string>("name"), "h" + to_json(variant.config.at("height")));
  EXPECT_EQ(variant.config.begin()->first, "height");  // its position in the space
  EXPECT_EQ(variant.sampled.size(), 4u);
  EXPECT_EQ(first_variant(space).config, variant.config);
  EXPECT_NE(first_variant(space, 1, 5).config.at("own"), variant.config.at("own"));
}

TEST(VariantGenerator, AFunctionThatThrowsIsNamed) {
  const Variant variant = first_variant({{"model", {{"x", fn<impossible>}}}, {"y", 3}});
  EXPECT_THAT(variant.fault, HasSubstr("fn<impossible> of \"model/x\" threw: there is no key \"missing\""));
  EXPECT_EQ(variant.config.get<int>("y"), 3);
}

// The examples are from the reference's section on tags.
TEST(FormatVariables, WritesTagsAsRayTuneDoes) {
  EXPECT_EQ(format_variables({{"a", 1}, {"b", "x"}, {"c/d", 0.90712}}), "a=1,b=x,d=0.9071");
  EXPECT_EQ(format_variables({{"b", 0.0}, {"a", -1.5}}), "a=-1.5000,b=0.0000");
  EXPECT_EQ(format_variables({{"a", 0.012345}, {"b", 0.00123456}, {"c", -1.2345e-5}}),
            "a=0.0123,b=0.00123,c=-1.23e-05");
  EXPECT_EQ(format_variables({{"flag", true}, {"nothing", {}}}), "flag=True,nothing=None");
  EXPECT_EQ(format_variables({{"text", "/a b//c/"}}), "text=a_b_c");
  EXPECT_EQ(format_variables({{"a-b", 3}, {"a/b", 6}}), "b=6,a-b=3");
  EXPECT_EQ(format_variables({}), "");
}

// Ray Tune replaces every run of other characters separately, and prints a list as Python's str() does.
TEST(FormatVariables, ARunNextToAnUnderscoreIsOneMoreAndListsAreThoseOfPython) {
  EXPECT_EQ(format_variables({{"text", "a_ b _c"}}), "text=a__b__c");
  EXPECT_EQ(format_variables({{"layers", list(true, Value(), 1, 1e-5, "\u00fc")}}), "layers=True_None_1_1e-05");
  EXPECT_EQ(format_variables({{"options", List{Dict{{"on", false}}}}}), "options=on_False");
}

double draw_one(const Config&, Random& random) { return random.uniform(); }

TEST(VariantGenerator, TheNumbersOfAFunctionAreThoseOfItsPlace) {
  const Variant variant =
      first_variant({{"opt", choice({{{"x", fn<draw_one>}}})}, {"items", list(fn<draw_one>, uniform(0, 1))}});
  const auto number_at = [](const char* place) {
    return base::RandomStream(1, 0, base::Purpose::search_space, base::checksum_of(place)).uniform();
  };
  EXPECT_EQ(variant.config.get<double>("opt/x"), number_at("opt/option/x"));
  EXPECT_EQ(variant.config.at("items").items().at(0).get<double>(), number_at("items/0"));
}

// Results read from a store have the config, but no record of the drawn values.
TEST(VariantGenerator, WhatIsSampledIsTheSameByTheConfigAloneAndPointsSampleConstantsToo) {
  const Space space{{"data", "here"},
                    {"lr", uniform(0, 1)},
                    {"fixed", {{"a", 1}, {"b", 2}}},
                    {"layers", list(1, randint(1, 9))},
                    {"constants", list(1, 2)},
                    {"opt", choice({{{"type", "sgd"}, {"momentum", uniform(0, 1)}}, {{"type", "adam"}}})}};
  const TuneConfig tune{.num_samples = 8, .points_to_evaluate = {{{"data", "there"}, {"fixed/b", 3}}}};
  const VariantGenerator variants(space, tune);
  for (std::int64_t trial = 0; trial < variants.size(); ++trial) {
    const Variant variant = variants(trial);
    EXPECT_EQ(variants.sampled(trial, variant.config), variant.sampled) << trial;
  }
  const auto paths = [&](std::int64_t trial) {
    std::vector<std::string> found;
    for (const auto& [path, value] : variants(trial).sampled) found.push_back(path.substr(0, path.find('/')));
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  };
  EXPECT_THAT(paths(0), ElementsAre("data", "lr", "fixed", "layers", "opt"));
  EXPECT_THAT(paths(1), ElementsAre("lr", "layers", "opt"));
}

TEST(VariantGenerator, AnObjectOfAHostIsShownByItsText) {
  const Value object{{"$python", Value("a pickle")}, {"repr", Value("Net(3)")}};
  const Variant variant = VariantGenerator({{"net", grid_search({object, Value("none")})}}, {})(0);
  EXPECT_EQ(variant.config.at("net"), object);
  EXPECT_EQ(format_variables(variant.sampled), "net=Net_3");
  const Value member{{"$python", Value("a pickle")}, {"repr", Value("Mode(1)")}, {"value", Value(1)}};
  const Variant of_member = VariantGenerator({{"mode", grid_search({member, Value("none")})}}, {})(0);
  EXPECT_EQ(format_variables(of_member.sampled), "mode=Mode_1");
}

TEST(VariantGenerator, ASuggestionMayHaveWhatTheSpaceLacks) {
  const VariantGenerator variants({{"x", uniform(0, 1)}, {"model", {{"width", 1}}}}, {.num_samples = 1});
  const Variant variant =
      variants(0, {{"x", 5}, {"model", {{"depth", 2}}}, {"model/kind", "wide"}, {"new", 3}, {"a/b", 4}});
  EXPECT_EQ(to_json(variant.config.value()),
            R"({"x": 5, "model": {"width": 1, "depth": 2, "kind": "wide"}, "new": 3, "a": {"b": 4}})");
  std::vector<std::string> paths;
  for (const auto& [path, value] : variant.sampled) paths.push_back(path);
  EXPECT_THAT(paths, ElementsAre("x", "model/depth", "model/kind", "new", "a/b"));
  EXPECT_EQ(variants.sampled(0, variant.config), variant.sampled);
}

TEST(VariantGenerator, AReplayTakesItsScheduleAndDrawsTheRest) {
  const Space space{{"lr", uniform(0, 1)},
                    {"other", uniform(0, 1)},
                    {"data", "here"},
                    {"model", {{"width", randint(1, 9)}, {"act", "relu"}, {"gone", randint(1, 9)}}},
                    {"opt", choice({{{"type", "sgd"}, {"momentum", uniform(0, 1)}}, {{"type", "adam"}}})}};
  const Config first{{"lr", 0.25},
                     {"data", "there"},
                     {"model", {{"width", 100}, {"act", "tanh"}}},
                     {"opt", {{"type", "adam"}}},
                     {"extra", 1}};
  const Variant drawn = VariantGenerator(space, {})(0);
  TunerOptions options{.param_space = space};
  std::vector<std::string> notes;
  PopulationBasedTrainingReplay{.schedule = PolicySchedule{first, {}}}.complete(options, notes);
  const Variant variant = VariantGenerator(options.param_space, {})(0);
  Config rest = variant.config;
  EXPECT_EQ(rest.at("other"), drawn.config.at("other"));
  rest.erase("other");
  EXPECT_EQ(rest, first);
  std::vector<std::string> sampled;
  for (const auto& [path, value] : variant.sampled) sampled.push_back(path);
  EXPECT_THAT(sampled, ElementsAre("lr", "other", "model/width", "opt/type"));
}

}  // namespace
}  // namespace cadre::tune
