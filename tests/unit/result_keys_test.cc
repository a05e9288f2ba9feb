#include "tune/result_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cadre::tune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ResultKeys, NumbersOfAResultAreThoseThatNotEveryResultHas) {
  const Metrics result{{"training_iteration", 3}, {"loss", 0.5}, {"name", "x"}, {"eval", {{"accuracy", 1}, {"pid", 2}}},
                       {"time_total_s", 1.5},     {"pid", 7},    {"done", 1},   {"timesteps_total", 10}};
  EXPECT_THAT(number_paths(result), ElementsAre("loss", "eval/accuracy", "eval/pid", "timesteps_total"));
}

TEST(ResultKeys, PathsAreAddedOnceAndUpToALimit) {
  std::vector<std::string> paths{"loss"};
  add_number_paths({{"accuracy", 1}, {"loss", 2}}, paths);
  EXPECT_THAT(paths, ElementsAre("loss", "accuracy"));
  Metrics many;
  for (std::size_t i = 0; i < 2 * kMostNumberPaths; ++i) many.set("m" + std::to_string(i), 1);
  add_number_paths(many, paths);
  EXPECT_EQ(paths.size(), kMostNumberPaths);
  EXPECT_THAT(number_paths(Metrics()), IsEmpty());
}

}  // namespace
}  // namespace cadre::tune
