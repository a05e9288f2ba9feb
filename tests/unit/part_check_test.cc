#include "train/part_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cadre/error.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::train {
namespace {

using test_support::message_of;
using ::testing::HasSubstr;

GroupCheckpoint checkpoint_in_place_at(const std::string& path) {
  return {.parts = {{.kind = CheckpointPart::Kind::in_place, .path = path}}};
}

TEST(PartCheck, ADirectoryThatIsRemovedSomeTimeLaterBecomesNoCheckpointInPlace) {
  const test_support::TemporaryDirectory run;
  const Checkpoints none{CheckpointConfig()};
  const std::vector<std::string> removals{"mine/1", "/elsewhere/mine/2"};
  const auto fault = [&](const std::string& path) {
    return message_of<InvalidArgument>(
        [&] { check_together(checkpoint_in_place_at(path), run.path(), none, removals); });
  };
  EXPECT_THAT(fault("mine/1"), HasSubstr("mine/1, which was one, is just being removed"));
  EXPECT_THAT(fault("mine"), HasSubstr("the directory mine cannot become a checkpoint"));
  EXPECT_THAT(fault("mine/1/inner"), HasSubstr("is just being removed"));
  EXPECT_NO_THROW(check_together(checkpoint_in_place_at("mine/10"), run.path(), none, removals));
  EXPECT_NO_THROW(check_together(checkpoint_in_place_at("mine/2"), run.path(), none, removals));
}

}  // namespace
}  // namespace cadre::train
