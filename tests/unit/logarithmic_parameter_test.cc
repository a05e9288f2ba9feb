#include "tune/plot/logarithmic_parameter.h"

#include <gtest/gtest.h>

#include "cadre/tune/search_space.h"

namespace cadre::tune {
namespace {

TEST(LogarithmicParameter, IsOneThatTheSpaceDrawsSo) {
  const Space space{{"lr", loguniform(1e-4, 1)},
                    {"width", lograndint(1, 100)},
                    {"momentum", uniform(0, 1)},
                    {"act", "relu"},
                    {"optimizer", {{"decay", loguniform(1e-6, 1e-2)}, {"beta", uniform(0, 1)}}}};
  const Value stored = stored_form(space);
  for (const char* path : {"lr", "width", "optimizer/decay"})
    EXPECT_TRUE(is_drawn_logarithmically(stored, path)) << path;
  for (const char* path : {"momentum", "act", "optimizer", "optimizer/beta", "none", "lr/none"})
    EXPECT_FALSE(is_drawn_logarithmically(stored, path)) << path;
  EXPECT_FALSE(is_drawn_logarithmically(Value("no space"), "lr"));
}

}  // namespace
}  // namespace cadre::tune
