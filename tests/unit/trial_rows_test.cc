#include "tune/loggers/trial_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cadre::tune {
namespace {

TEST(TrialRows, AResultEndsWithItsCheckpointAndWhetherItIsTheLastWhateverTheFunctionHasReported) {
  const LogResult last{
      .metrics = {{"done", 7}, {"loss", 0.5}}, .checkpoint_dir_name = "checkpoint_000000", .done = true};
  EXPECT_EQ(to_json(row_of(last)), R"({"loss": 0.5, "checkpoint_dir_name": "checkpoint_000000", "done": true})");
  EXPECT_EQ(to_json(row_of({.metrics = {{"loss", 1}}})), R"({"loss": 1, "checkpoint_dir_name": null, "done": false})");
}

}  // namespace
}  // namespace cadre::tune
