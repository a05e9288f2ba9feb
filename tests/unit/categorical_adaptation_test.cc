#include "tune/searchers/categorical_adaptation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "cadre/error.h"

namespace cadre::tune {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Pointwise;

using Options = std::vector<std::optional<std::size_t>>;

auto near(const std::vector<double>& expected) { return Pointwise(DoubleNear(1e-7), expected); }

// From cmaes 0.13.1, CatCMAwM(c_space=[3, 4], population_size=6), after five calls of tell() with these options. Before
// each its _delta was set to _delta_init / _Delta, as the paper has it; the package uses that of the call before.
TEST(CategoricalAdaptation, AdaptsAsTheReferenceDoes) {
  CategoricalAdaptation choices({3, 4}, 0.27);
  for (std::size_t generation = 0; generation < 5; ++generation) {
    std::vector<Options> solutions;
    for (std::size_t k = 0; k < 6; ++k)
      solutions.push_back({(k * k + generation) % 3, k > 2 ? (k + 2 * generation) % 4 : 1});
    choices.adapt(solutions, {0.637042571241, 0.284570257438, 0.078387171321});
  }
  EXPECT_THAT(choices.probabilities(0), near({0.203037171, 0.502827653, 0.294135176}));
  EXPECT_THAT(choices.probabilities(1), near({0.048533208, 0.854400375, 0.048533208, 0.048533208}));
  EXPECT_NEAR(choices.state().inverse_step, 1.671902035, 1e-7);
}

TEST(CategoricalAdaptation, KeepsALeastProbabilityOfEachOption) {
  CategoricalAdaptation choices({4}, 0.27);
  for (int i = 0; i < 200; ++i) choices.adapt({Options{2}, Options{2}}, {0.7, 0.3});
  EXPECT_THAT(choices.probabilities(0), ElementsAre(DoubleNear(0.09, 1e-9), DoubleNear(0.09, 1e-9),
                                                    DoubleNear(0.73, 1e-9), DoubleNear(0.09, 1e-9)));
}

TEST(CategoricalAdaptation, AChoiceThatNoSolutionHasKeepsItsProbabilities) {
  CategoricalAdaptation choices({2, 5}, 0.27);
  for (int i = 0; i < 20; ++i) choices.adapt({Options{1, std::nullopt}, Options{1, std::nullopt}}, {0.7, 0.3});
  EXPECT_GT(choices.probabilities(0)[1], 0.8);
  EXPECT_THAT(choices.probabilities(1), Each(DoubleNear(0.2, 1e-12)));
}

TEST(CategoricalAdaptation, OptionsLieOneBehindTheOther) {
  CategoricalAdaptation choices({1, 4}, 0.27);
  EXPECT_EQ(choices.option_at(0, 0.999), 0U);
  EXPECT_EQ(choices.option_at(1, 0), 0U);
  EXPECT_EQ(choices.option_at(1, 0.25), 1U);
  EXPECT_EQ(choices.option_at(1, 1 - 0x1p-53), 3U);
  choices.prefer(1, 3, 0.5);
  EXPECT_EQ(choices.option_at(1, 0.38), 3U);
  EXPECT_EQ(choices.option_at(1, 0.37), 2U);
}

TEST(CategoricalAdaptation, AStateOfOtherChoicesIsRefused) {
  CategoricalAdaptation choices({2, 3}, 0.27);
  EXPECT_THROW(choices.restore(CategoricalAdaptation({3, 2}, 0.27).state()), InvalidArgument);
  EXPECT_NO_THROW(choices.restore(CategoricalAdaptation({2, 3}, 0.27).state()));
}

}  // namespace
}  // namespace cadre::tune
