#include "tune/searchers/variant_generator.h"

#include <gtest/gtest.h>

namespace cadre::tune {
namespace {

const Space kSpace = {{"lr", uniform(0.001, 1)},
                      {"epochs", 5},
                      {"model", {{"width", randint(1, 100)}, {"act", choice({"relu", "tanh"})}}}};

TEST(VariantGenerator, DrawsDomainsAndKeepsConstantsAtAnyDepth) {
  const Variant variant = generate_variant(kSpace, 1, 0);
  EXPECT_EQ(variant.config.get<int>("epochs"), 5);
  EXPECT_TRUE(variant.config.at("model/width").is_integer());
  ASSERT_EQ(variant.sampled.size(), 3u);
  EXPECT_EQ(variant.sampled[1].first, "model/width");
  EXPECT_EQ(variant.sampled[1].second, variant.config.at("model/width"));
}

TEST(VariantGenerator, ATrialsConfigDependsOnItsIndexAndTheSeedOnly) {
  EXPECT_EQ(generate_variant(kSpace, 1, 7).config, generate_variant(kSpace, 1, 7).config);
  EXPECT_FALSE(generate_variant(kSpace, 1, 7).config == generate_variant(kSpace, 1, 8).config);
  EXPECT_FALSE(generate_variant(kSpace, 1, 7).config == generate_variant(kSpace, 2, 7).config);
}

// The examples are those of the reference's section on tags.
TEST(FormatVariables, WritesTagsAsRayTuneDoes) {
  EXPECT_EQ(format_variables({{"a", 1}, {"b", "x"}, {"c/d", 0.90712}}), "a=1,b=x,d=0.9071");
  EXPECT_EQ(format_variables({{"b", 1e-5}, {"a", -1.5}}), "a=-1.5000,b=0.0000");
  EXPECT_EQ(format_variables({{"flag", true}, {"nothing", {}}}), "flag=True,nothing=None");
  EXPECT_EQ(format_variables({{"text", "/a b//c/"}}), "text=a_b_c");
  EXPECT_EQ(format_variables({{"a-b", 3}, {"a/b", 6}}), "b=6,a-b=3");
  EXPECT_EQ(format_variables({}), "");
}

}  // namespace
}  // namespace cadre::tune
