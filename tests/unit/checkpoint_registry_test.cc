#include "checkpoint/checkpoint_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace cadre::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Adds checkpoints "1", "2", … of one owner with these scores.
std::vector<CheckpointId> add_all(CheckpointRegistry& registry, const std::vector<Value>& scores) {
  std::vector<CheckpointId> ids;
  for (const Value& score : scores) {
    const auto number = static_cast<std::int64_t>(ids.size()) + 1;
    ids.push_back(registry.add(0, number, std::to_string(number), Metrics{{"score", score}}));
  }
  return ids;
}

std::vector<std::string> directories(const CheckpointRegistry& registry) {
  std::vector<std::string> names;
  for (const CheckpointId id : registry.kept(0)) names.push_back(registry.get(id).directory);
  return names;
}

std::vector<std::string> deleted(CheckpointRegistry& registry) {
  std::vector<std::string> names;
  for (const CheckpointRecord& record : registry.take_deletable()) names.push_back(record.directory);
  return names;
}

TEST(CheckpointRegistry, WithoutALimitAllAreKept) {
  CheckpointRegistry registry({});
  add_all(registry, {1.0, 2.0, 3.0});
  EXPECT_THAT(directories(registry), ElementsAre("1", "2", "3"));
  EXPECT_THAT(deleted(registry), IsEmpty());
}

TEST(CheckpointRegistry, WithoutAScoreTheNewestAreKept) {
  CheckpointRegistry registry({.num_to_keep = 2});
  add_all(registry, {3.0, 2.0, 1.0});
  EXPECT_THAT(directories(registry), ElementsAre("2", "3"));
  EXPECT_THAT(deleted(registry), ElementsAre("1"));
}

TEST(CheckpointRegistry, TheBestAreKeptAndTheNewestInAnyCase) {
  CheckpointRegistry registry({.num_to_keep = 2, .checkpoint_score_attribute = "score"});
  add_all(registry, {0.9, 0.5, 0.8, 0.1});
  EXPECT_THAT(directories(registry), ElementsAre("4", "3", "1"));
  EXPECT_THAT(deleted(registry), ElementsAre("2"));
  registry.add(0, 5, "5", Metrics{{"score", 0.85}});
  EXPECT_THAT(directories(registry), ElementsAre("5", "1"));
}

TEST(CheckpointRegistry, SmallScoresAreBestWhenAskedFor) {
  CheckpointRegistry registry(
      {.num_to_keep = 1, .checkpoint_score_attribute = "score", .checkpoint_score_order = Mode::min});
  add_all(registry, {0.3, 0.1, 0.2, 0.1});
  EXPECT_THAT(directories(registry), ElementsAre("4"));
}

TEST(CheckpointRegistry, NanIsTheWorstAndNoScoreStaysUntilThereIsOne) {
  CheckpointRegistry registry({.num_to_keep = 1, .checkpoint_score_attribute = "score"});
  add_all(registry, {std::nan(""), "none", -5.0, -6.0, -4.0});
  EXPECT_THAT(directories(registry), ElementsAre("2", "5"));
  EXPECT_THAT(deleted(registry), UnorderedElementsAre("1", "3", "4"));
}

TEST(CheckpointRegistry, AReferenceKeepsWhatRetentionDrops) {
  CheckpointRegistry registry({.num_to_keep = 1});
  const CheckpointId first = add_all(registry, {1.0})[0];
  registry.retain(first);
  registry.retain(first);
  add_all(registry, {2.0, 3.0});
  EXPECT_THAT(deleted(registry), ElementsAre("1"));  // from the second add_all()
  registry.release(first);
  EXPECT_THAT(deleted(registry), IsEmpty());
  EXPECT_EQ(registry.get(first).directory, "1");
  registry.release(first);
  EXPECT_THAT(deleted(registry), ElementsAre("1"));
}

TEST(CheckpointRegistry, ReleasingTooOftenIsNoticed) {
  CheckpointRegistry registry({});
  const CheckpointId id = add_all(registry, {1.0})[0];
  EXPECT_THROW(registry.release(id), std::logic_error);
}

TEST(CheckpointRegistry, OwnersDoNotShareALimit) {
  CheckpointRegistry registry({.num_to_keep = 1});
  registry.add(0, 1, "a", {});
  registry.add(1, 1, "b", {});
  EXPECT_THAT(deleted(registry), IsEmpty());
}

TEST(CheckpointRegistry, SaysWhichOnesALossOfPowerLeaves) {
  CheckpointRegistry registry({.num_to_keep = 3});
  const auto ids = add_all(registry, {1, 2, 3});
  EXPECT_FALSE(registry.is_synced(ids[0]));
  registry.set_synced(ids[1]);
  EXPECT_TRUE(registry.is_synced(ids[0]));  // safe, because a newer one is
  EXPECT_TRUE(registry.is_synced(ids[1]));
  EXPECT_FALSE(registry.is_synced(ids[2]));
}

}  // namespace
}  // namespace cadre::checkpoint
