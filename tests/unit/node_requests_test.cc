#include "engine/cluster/node_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cadre::engine::cluster {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr NodeRequests::TimePoint kNow{1h};

// Requests 1, of three nodes, and 2, of one.
class NodeRequestsTest : public testing::Test {
 protected:
  NodeRequestsTest() {
    requests.add({.group = "train", .nodes = 3});
    requests.add({.group = "validation"});
  }
  // Returns group and number of what is to be asked for by then.
  std::vector<std::pair<std::string, std::int64_t>> asked_for(NodeRequests::TimePoint now) {
    std::vector<std::pair<std::string, std::int64_t>> asked;
    for (const NodeRequest& request : requests.take_replacements(now)) asked.emplace_back(request.group, request.nodes);
    return asked;
  }

  NodeRequests requests;
};

TEST_F(NodeRequestsTest, ANodeThatIsGoneIsAskedForOnce) {
  EXPECT_TRUE(requests.agent_ended({.request = 1, .ordinal = 2}, true, false, kNow));
  EXPECT_TRUE(requests.agent_ended({.request = 1, .ordinal = 2}, true, false, kNow));
  EXPECT_THAT(asked_for(kNow), ElementsAre(std::pair("train", 1)));
  EXPECT_TRUE(requests.agent_ended({.request = 1}, true, false, kNow));  // the job, with the other two
  EXPECT_THAT(asked_for(kNow), ElementsAre(std::pair("train", 2)));
  EXPECT_THAT(requests.kept(), ElementsAre(KeptRequest{{.id = 2, .group = "validation"}}));
}

TEST_F(NodeRequestsTest, ANodeThatDrainsIsAskedForBeforeItIsGone) {
  requests.replace({1, 0}, kNow);
  EXPECT_THAT(asked_for(kNow), ElementsAre(std::pair("train", 1)));
  EXPECT_TRUE(requests.agent_ended({.request = 1, .ordinal = 0}, true, false, kNow));
  EXPECT_FALSE(requests.has_replacements());
  EXPECT_THAT(requests.kept()[0].ended, ElementsAre(0));
}

TEST_F(NodeRequestsTest, OneThatWouldBeOfNoUseIsNotAskedFor) {
  requests.forget({1, 0});
  EXPECT_TRUE(requests.agent_ended({.request = 1, .ordinal = 0}, true, false, kNow));
  EXPECT_FALSE(requests.has_replacements());
}

TEST_F(NodeRequestsTest, AgentsThatEndBeforeTheyConnectAreAskedForLaterEachTimeAndNotForEver) {
  std::optional<NodeRequests::TimePoint> before;
  for (std::uint64_t request = 1; request <= 6; ++request) {
    requests.add({.group = "more"});
    const bool goes_on = requests.agent_ended({.request = request, .ordinal = 0}, false, false, kNow);
    EXPECT_EQ(goes_on, request <= 5);
    if (!goes_on) break;
    EXPECT_THAT(asked_for(kNow), IsEmpty());
    const auto next = requests.next_replacement();
    ASSERT_TRUE(next);
    if (before) {
      EXPECT_GT(*next, *before);
    }
    before = next;
    EXPECT_THAT(asked_for(*next), SizeIs(1));
  }
  requests.agent_connected();
  EXPECT_TRUE(requests.agent_ended({.request = 1, .ordinal = 1}, false, false, kNow));
}

TEST_F(NodeRequestsTest, AnAgentThatIsNeededAndEndsIsNotAskedForAgain) {
  EXPECT_FALSE(requests.agent_ended({.request = 2, .ordinal = 0}, false, true, kNow));
  EXPECT_FALSE(requests.has_replacements());
}

TEST_F(NodeRequestsTest, WhatWaitsHasTheProvidersWords) {
  requests.note(Queued{.request = 1, .reason = "Priority", .expected_start = 5});
  requests.replace({1, 0}, kNow);  // it is there, and drains
  EXPECT_THAT(requests.waiting({{1, 0}, {1, 1}}),
              ElementsAre(WaitingNodes{"train", 1, "Priority", 5}, WaitingNodes{"validation", 1, "", std::nullopt}));
  EXPECT_THAT(requests.waiting({{1, 1}, {1, 2}, {2, 0}}), IsEmpty());
  requests.note(Refused{.request = 2, .reason = "too many"});
  EXPECT_THAT(requests.waiting({{1, 1}, {1, 2}}),
              ElementsAre(WaitingNodes{"validation", 1, "refused: too many", std::nullopt}));
}

TEST_F(NodeRequestsTest, WhatIsSaidOfANodeThatIsThereSaysNothingOfTheOthers) {
  requests.note(Queued{.request = 1, .reason = "in the queue"});
  EXPECT_EQ(requests.waiting({{1, 0}, {2, 0}}).at(0).reason, "in the queue");
  for (std::int64_t ordinal : {1, 2, 0}) {
    const bool runs = ordinal != 1;
    requests.note(Queued{.request = 1, .reason = runs ? "job 5 runs" : "job 6 waits", .ordinal = ordinal});
  }
  EXPECT_THAT(requests.waiting({{1, 0}, {1, 2}, {2, 0}}),
              ElementsAre(WaitingNodes{"train", 1, "job 6 waits", std::nullopt}));
  requests.agent_ended({.request = 1, .ordinal = 1}, true, false, kNow);
  EXPECT_THAT(requests.waiting({{1, 0}, {1, 2}, {2, 0}}), IsEmpty());
}

TEST_F(NodeRequestsTest, ANodeEndsWithItsRequestOrBefore) {
  EXPECT_EQ(requests.end_of({1, 0}), std::nullopt);
  requests.note(NodeEnds{.request = 1, .at = kNow + 9s});
  requests.note(NodeEnds{.request = 1, .ordinal = 0, .at = kNow + 5s});
  EXPECT_EQ(requests.end_of({1, 0}), kNow + 5s);
  EXPECT_EQ(requests.end_of({1, 1}), kNow + 9s);
  requests.note(NodeEnds{.request = 1, .ordinal = 0, .at = {}});
  EXPECT_EQ(requests.end_of({1, 0}), kNow + 9s);
}

TEST(NodeRequests, ThoseOfAnEarlierProcessAreTakenOverWithoutWhatNobodyNeeds) {
  NodeRequests requests;
  requests.number_after(7);
  requests.take_over({.claimed = {{{.id = 5, .group = "train", .nodes = 4}, {1}}}, .surplus = {{5, 3}}});
  EXPECT_TRUE(requests.is_surplus({5, 3}));
  EXPECT_THAT(requests.kept(), ElementsAre(KeptRequest{{.id = 5, .group = "train", .nodes = 4}, {1, 3}}));
  EXPECT_EQ(requests.add({.group = "more"}).id, 8U);
  // It had waited for a controller in vain: that is no failure.
  EXPECT_TRUE(requests.agent_ended({.request = 5, .ordinal = 0}, false, true, kNow));
  EXPECT_THAT(requests.take_replacements(kNow), SizeIs(1));
}

}  // namespace
}  // namespace cadre::engine::cluster
