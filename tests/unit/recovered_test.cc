// A recovery finds checkpoints that are still to be sealed, and others that are sealed although no event says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/replay.h"

namespace cadre::control {
namespace {

using ::testing::ElementsAre;
using ::testing::Key;
using ::testing::Pair;

constexpr checkpoint::OwnerId kOwner = 0;

TEST(Recovered, AddsCheckpointsThatAPublishedStoreHasSealed) {
  checkpoint::CheckpointRegistry registry({.num_to_keep = 1});
  const auto recorded = registry.add(kOwner, 1, "checkpoint_000000", {});
  registry.set_synced(recorded);
  const auto published = registry.add(kOwner, 2, "checkpoint_000001", {});
  registry.retain(published);
  const auto fresh = registry.add(kOwner, 3, "checkpoint_000002", {});

  Recovered recovered;
  recovered.add_checkpoint({.id = recorded, .directory = "checkpoint_000000", .synced = true}, registry);
  recovered.add_checkpoint(
      {.id = published, .directory = "checkpoint_000001", .synced = true, .manifest = "{\"a\": 1}"}, registry);
  recovered.add_checkpoint({.id = fresh, .directory = "checkpoint_000002"}, registry);
  recovered.add_checkpoint({.id = fresh + 1, .directory = "gone", .synced = true}, registry);
  EXPECT_THAT(recovered.unsealed_checkpoints, ElementsAre(Pair(fresh, "checkpoint_000002")));
  EXPECT_THAT(recovered.sealed_checkpoints, ElementsAre(Pair(published, Dict{{"a", 1}})));
}

}  // namespace
}  // namespace cadre::control
