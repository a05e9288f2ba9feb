#include "engine/cluster/ordinal.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace cadre::engine::cluster {
namespace {

TEST(Ordinal, NumbersAreReadAndNothingElse) {
  ::unsetenv(kOrdinalVariable);
  ::unsetenv(kCpusVariable);
  EXPECT_EQ(agent_ordinal(), std::nullopt);
  EXPECT_EQ(agent_cpus(), std::nullopt);
  ::setenv(kOrdinalVariable, "3", 1);
  ::setenv(kCpusVariable, "3.5", 1);
  EXPECT_EQ(agent_ordinal(), 3);
  EXPECT_EQ(agent_cpus(), 3.5);
  for (const char* const text : {"", "-1", "3x", "x", "nan"}) {
    ::setenv(kOrdinalVariable, text, 1);
    ::setenv(kCpusVariable, text, 1);
    EXPECT_EQ(agent_ordinal(), std::nullopt) << text;
    EXPECT_EQ(agent_cpus(), std::nullopt) << text;
  }
  ::setenv(kCpusVariable, "0", 1);
  EXPECT_EQ(agent_cpus(), std::nullopt);
  ::unsetenv(kOrdinalVariable);
  ::unsetenv(kCpusVariable);
}

}  // namespace
}  // namespace cadre::engine::cluster
