#include "engine/cluster/storage_reach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/checksum.h"

namespace cadre::engine::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

class StorageReachTest : public testing::Test {
 protected:
  static TriedStorage found(const std::string& contents) { return {.checksum = base::checksum_of(contents)}; }

  StorageReach reach{
      {.uri = {.scheme = "s3", .location = "bucket/run"}, .file = "lease.json", .contents = "of this run"}};
  const StorageReach::TimePoint begin{1000s};
};

TEST_F(StorageReachTest, ANodeReachesItThatFindsWhatTheControllerHasWritten) {
  const UseStorage use = reach.begin(1, begin);
  EXPECT_EQ(use.uri, "s3://bucket/run");
  EXPECT_EQ(use.file, "lease.json");
  EXPECT_TRUE(reach.is_trying(1));
  EXPECT_FALSE(reach.is_reached(1, begin));
  EXPECT_EQ(reach.take(1, found("of this run"), begin), "");
  EXPECT_FALSE(reach.awaits_first_tries());
  EXPECT_TRUE(reach.is_reached(1, begin));
  reach.forget(1);
  EXPECT_FALSE(reach.is_reached(1, begin));
}

TEST_F(StorageReachTest, ANodeDoesNotThatFindsSomethingElseOrNothing) {
  for (const NodeId node : {1, 2}) reach.begin(node, begin);
  EXPECT_THAT(reach.take(1, found("of another run"), begin), HasSubstr("its lease.json differs"));
  EXPECT_EQ(reach.take(2, {.fault = "connection refused"}, begin), "connection refused");
  for (const NodeId node : {1, 2, 3}) EXPECT_FALSE(reach.is_reached(node, begin)) << node;
}

TEST_F(StorageReachTest, ANodeThatSaysNothingIsGivenUp) {
  reach.begin(1, begin);
  reach.begin(2, begin + 1s);
  EXPECT_THAT(reach.give_up(begin + StorageReach::time_to_try - 1ms), IsEmpty());
  EXPECT_THAT(reach.give_up(begin + StorageReach::time_to_try), ElementsAre(1));
  EXPECT_TRUE(reach.awaits_first_tries());
  EXPECT_NE(reach.take(1, found("of this run"), begin), "") << "it comes too late";
  EXPECT_FALSE(reach.is_reached(1, begin));
  EXPECT_EQ(reach.take(2, found("of this run"), begin), "");
}

TEST_F(StorageReachTest, ANodeThatDoesNotReachItTriesAgainLessAndLessOften) {
  StorageReach::TimePoint now = begin;
  for (const auto pause : {10s, 20s, 40s, 80s, 160s, 320s, 600s, 600s}) {
    reach.begin(1, now);
    EXPECT_THAT(reach.due(now + pause), IsEmpty()) << "it tries";
    EXPECT_EQ(reach.take(1, {.fault = "no route"}, now), "no route");
    EXPECT_THAT(reach.due(now + pause - 1ms), IsEmpty());
    now += pause;
    EXPECT_THAT(reach.due(now), ElementsAre(1)) << pause.count();
  }
  reach.begin(1, now);
  EXPECT_FALSE(reach.awaits_first_tries()) << "a run begins without waiting for it";
  EXPECT_THAT(reach.give_up(now + StorageReach::time_to_try), ElementsAre(1));
  now += StorageReach::time_to_try + StorageReach::longest_pause;
  EXPECT_THAT(reach.due(now), ElementsAre(1)) << "to say nothing is to fail";
  EXPECT_EQ(reach.failed_tries(1), 9);
  reach.begin(1, now);
  EXPECT_EQ(reach.take(1, found("of this run"), now), "");
  EXPECT_TRUE(reach.is_reached(1, now));
  EXPECT_TRUE(reach.fails(1, now));
  EXPECT_THAT(reach.due(now + StorageReach::time_without), IsEmpty()) << "the next file that it stores is its next try";
}

TEST_F(StorageReachTest, ANodeThatFailsThereDoesWithoutItForAWhile) {
  reach.begin(1, begin);
  EXPECT_EQ(reach.take(1, found("of this run"), begin), "");
  EXPECT_TRUE(reach.fails(1, begin));
  EXPECT_FALSE(reach.fails(1, begin + 1s)) << "it is known";
  EXPECT_FALSE(reach.is_reached(1, begin + StorageReach::time_without));
  EXPECT_TRUE(reach.is_reached(1, begin + 1s + StorageReach::time_without));
  EXPECT_FALSE(reach.fails(2, begin)) << "nobody knows that node";
}

}  // namespace
}  // namespace cadre::engine::cluster
