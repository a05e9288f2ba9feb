// How many nodes there are to be while work comes and goes.
#include "engine/cluster/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "engine/cluster/provider.h"

namespace cadre::engine::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::chrono_literals;
using TimePoint = Pool::TimePoint;

class PoolTest : public ::testing::Test {
 protected:
  // Decides now, and again when what is missing or too much has been so for a moment.
  std::vector<PoolOrder> decide(Pool& pool, const std::vector<PoolNodes>& nodes) {
    pool.decide(nodes, now);
    now += 500ms;
    return pool.decide(nodes, now);
  }
  std::int64_t requests(Pool& pool, const PoolNodes& nodes = {}) { return decide(pool, {nodes}).at(0).request; }

  TimePoint now = TimePoint(1h);
};

Resources node(double cpus, double gpus = 0, const std::string& group = "nodes") {
  return {.cpus = cpus, .gpus = gpus, .labels = {{group_label, group}}};
}

// ---- Requests

TEST_F(PoolTest, AsksForAsManyNodesAsWorkersNeedThatWait) {
  Pool pool({{.name = "nodes", .most = 10, .cpus = 4}});
  EXPECT_EQ(requests(pool), 0);
  pool.set_demand({{{.cpus = 1}, 9}});
  EXPECT_EQ(requests(pool), 3);
  pool.set_demand({{{.cpus = 3}, 2}, {{.cpus = 1}, 3}});
  EXPECT_EQ(requests(pool), 3);  // 3 + 1, 3 + 1, 1
  pool.set_demand({{{.cpus = 1}, 1'000'000'000}});
  EXPECT_EQ(requests(pool), 10);
  pool.set_demand({{{.cpus = 5}, 1}});
  EXPECT_EQ(requests(pool), 0) << "no node has room for it";
}

TEST_F(PoolTest, CountsNodesThatComeAndAsksForNoMoreThanThereMayBe) {
  Pool pool({{.name = "nodes", .most = 10, .cpus = 1}});
  pool.set_demand({{{.cpus = 1}, 8}});
  EXPECT_EQ(requests(pool, {.coming = 5}), 3);
  EXPECT_EQ(requests(pool, {.there = 6, .coming = 1}), 3);
  EXPECT_EQ(requests(pool, {.there = 10}), 0);
}

TEST_F(PoolTest, TakesNodesToBeLikeTheLatestOneOfTheirGroup) {
  Pool pool({{.name = "nodes", .most = 10}});
  pool.set_demand({{{.cpus = 1}, 8}});
  EXPECT_EQ(requests(pool), 8) << "nothing is known of them";
  pool.saw(0, node(4));
  EXPECT_EQ(requests(pool, {.there = 1}), 2);
  pool.set_demand({{{.cpus = 8}, 1}});
  EXPECT_EQ(requests(pool, {.there = 1}), 0);
}

TEST_F(PoolTest, PlacesSharesOfGpusAndKindsOfThem) {
  Pool pool({{.name = "a", .most = 4}, {.name = "b", .most = 4}});
  Resources of_a = node(8, 2, "a");
  of_a.accelerator_type = "A100";
  Resources of_b = node(8, 1, "b");
  of_b.accelerator_type = "A10G";
  pool.saw(0, of_a);
  pool.saw(1, of_b);
  pool.set_demand({{{.cpus = 1, .gpus = 0.5}, 5}, {{.cpus = 1, .gpus = 1, .accelerator_type = "A10G"}, 3}});
  const std::vector<PoolOrder> orders = decide(pool, {{}, {}});
  EXPECT_EQ(orders[0].request, 2);
  EXPECT_EQ(orders[1].request, 3);
}

TEST_F(PoolTest, AGroupsLabelDecidesAlsoBeforeThereWasANode) {
  Pool pool({{.name = "train", .most = 4}, {.name = "validate", .most = 2}});
  pool.set_demand({{{.cpus = 1, .labels = {{group_label, "validate"}, {"zone", "eu"}}}, 3}});
  const std::vector<PoolOrder> orders = decide(pool, {{}, {}});
  EXPECT_EQ(orders[0].request, 0);
  EXPECT_EQ(orders[1].request, 2);
}

TEST_F(PoolTest, AKindOfGpusDecidesAlsoBeforeThereWasANodeIfItIsSaid) {
  Pool pool({{.name = "a", .most = 4, .gpus = 4, .accelerator_type = "A100"}, {.name = "b", .most = 4}});
  pool.set_demand({{{.cpus = 1, .gpus = 1, .accelerator_type = "A10G"}, 2}});
  const std::vector<PoolOrder> orders = decide(pool, {{}, {}});
  EXPECT_EQ(orders[0].request, 0);
  EXPECT_EQ(orders[1].request, 2);
}

TEST_F(PoolTest, AGroupOfWhichOnlyTheCpusAreSaidHasNoGpus) {
  Pool pool({{.name = "a", .most = 4, .cpus = 8}, {.name = "b", .most = 4}});
  pool.set_demand({{{.cpus = 1, .gpus = 1}, 1}});
  const std::vector<PoolOrder> orders = decide(pool, {{}, {}});
  EXPECT_EQ(orders[0].request, 0);
  EXPECT_EQ(orders[1].request, 1);
}

TEST_F(PoolTest, AWorkerThatNeedsWhatIsNotKnownOfNodesIsTakenToNeedOneForItself) {
  for (const double cpus : {0.0, 8.0}) {
    Pool pool({{.name = "nodes", .most = 4, .cpus = cpus}});
    pool.set_demand({{{.cpus = 0, .custom = {{"tpu", 1}}}, 1'000'000'000'000}});
    EXPECT_EQ(requests(pool), 4);
    pool.set_demand({{{.cpus = 0, .custom = {{"tpu", 1}}}, 2}});
    EXPECT_EQ(requests(pool), 2);
  }
}

TEST_F(PoolTest, WhatOneGroupCannotHaveGoesToTheNext) {
  Pool pool({{.name = "cheap", .most = 2, .cpus = 2}, {.name = "dear", .most = 9, .cpus = 2}});
  pool.set_demand({{{.cpus = 1}, 7}});
  const std::vector<PoolOrder> orders = decide(pool, {{}, {}});
  EXPECT_EQ(orders[0].request, 2);
  EXPECT_EQ(orders[1].request, 2);
  pool.give_up(0);
  EXPECT_EQ(decide(pool, {{}, {}})[1].request, 4);
  EXPECT_TRUE(pool.may_ask());
  pool.give_up(1);
  EXPECT_FALSE(pool.may_ask());
}

TEST_F(PoolTest, NodesForWhichLeastIsPaidAreAskedForFirst) {
  Pool pool({{.name = "dear", .most = 9, .cpus = 2, .price = 3},
             {.name = "cheap", .most = 2, .cpus = 2, .price = 1},
             {.name = "large", .most = 9, .cpus = 8, .price = 5}});
  const auto requested = [&](std::int64_t workers, const Resources& worker = {.cpus = 1}) {
    pool.set_demand({{worker, workers}});
    std::vector<std::int64_t> counts;
    for (const PoolOrder& order : decide(pool, {{}, {}, {}})) counts.push_back(order.request);
    return counts;
  };
  EXPECT_THAT(requested(1), ElementsAre(0, 1, 0));
  EXPECT_THAT(requested(4), ElementsAre(0, 2, 0)) << "2, where a large one costs 5";
  EXPECT_THAT(requested(6), ElementsAre(1, 2, 0)) << "there are two cheap ones; a dear one costs 3 for the rest";
  EXPECT_THAT(requested(12), ElementsAre(0, 2, 1)) << "for the rest dear ones would cost 12";
  EXPECT_THAT(requested(1, {.cpus = 4}), ElementsAre(0, 0, 1)) << "others have no room";
  EXPECT_THAT(requested(3, {.cpus = 1, .labels = {{group_label, "dear"}}}), ElementsAre(2, 0, 0));
  pool.give_up(1);
  EXPECT_THAT(requested(2), ElementsAre(1, 0, 0));
}

TEST_F(PoolTest, WhatDrainsGetsANodeInItsPlace) {
  Pool pool({{.name = "nodes", .most = 4, .cpus = 2}});
  EXPECT_EQ(requests(pool, {.there = 1, .leaving = 2}), 2);
  EXPECT_EQ(requests(pool, {.there = 1, .coming = 2, .leaving = 2}), 0);
}

TEST_F(PoolTest, KeepsTheLeastWithoutDemand) {
  Pool pool({{.name = "nodes", .least = 2, .most = 4}});
  EXPECT_EQ(requests(pool), 2);
  EXPECT_EQ(requests(pool, {.there = 1}), 1);
  const std::vector<PoolOrder> orders =
      pool.decide({{.there = 3, .idle = {{3, now - 1h}, {2, now - 1h}, {1, now - 1h}}}}, now);
  EXPECT_THAT(orders[0].give_back, ElementsAre(3));
}

TEST_F(PoolTest, AGroupWithAFixedNumberIsLeftAlone) {
  Pool pool({{.name = "nodes", .least = 2, .most = 2}});
  EXPECT_FALSE(pool.follows_demand());
  pool.set_demand({{{.cpus = 1}, 9}});
  EXPECT_EQ(requests(pool), 0);
  EXPECT_FALSE(pool.may_ask());
}

// ---- Withdrawals

TEST_F(PoolTest, WithdrawsWhatNothingNeedsAnyMore) {
  Pool pool({{.name = "nodes", .least = 1, .most = 10, .cpus = 1}});
  pool.set_demand({{{.cpus = 1}, 3}});
  const PoolNodes nodes{.there = 1, .coming = 6};
  EXPECT_EQ(decide(pool, {nodes})[0].withdraw, 3);
  pool.set_demand({});
  EXPECT_EQ(decide(pool, {nodes})[0].withdraw, 6);
  EXPECT_EQ(decide(pool, {{.coming = 6}})[0].withdraw, 5) << "the least";
}

TEST_F(PoolTest, DemandThatComesAndGoesCostsNothing) {
  Pool pool({{.name = "nodes", .most = 10, .cpus = 1}});
  for (int i = 0; i < 100; ++i) {
    pool.set_demand({{{.cpus = 1}, 3}});
    EXPECT_EQ(pool.decide({{}}, now)[0], PoolOrder());
    EXPECT_EQ(pool.next(), now + 500ms);
    now += 300ms;
    pool.set_demand({});
    EXPECT_EQ(pool.decide({{}}, now)[0], PoolOrder());
    EXPECT_EQ(pool.next(), std::nullopt);
    now += 300ms;
  }
}

// ---- Nodes that go back

TEST_F(PoolTest, GivesANodeBackThatHasHadNothingToDoForItsTime) {
  Pool pool({{.name = "nodes", .most = 3, .linger = 60s}});
  const PoolNodes nodes{.there = 3, .idle = {{7, now - 10s}, {4, now - 60s}}};
  EXPECT_THAT(pool.decide({nodes}, now)[0].give_back, ElementsAre(4));
  EXPECT_EQ(pool.next(), now + 50s);
}

// They wait for others, to be used together.
TEST_F(PoolTest, KeepsNodesWhileSomethingWaitsThatHasRoomOnSuchNodes) {
  Pool pool({{.name = "nodes", .most = 4, .cpus = 8}, {.name = "other", .most = 4, .cpus = 2}});
  pool.saw(0, node(8));
  pool.saw(1, node(2, 0, "other"));
  pool.set_demand({{{.cpus = 8}, 3}});
  const std::vector<PoolNodes> nodes{{.there = 1, .coming = 3, .idle = {{1, now - 1h}}},
                                     {.there = 1, .idle = {{2, now - 1h}}}};
  const std::vector<PoolOrder> orders = pool.decide(nodes, now);
  EXPECT_THAT(orders[0].give_back, IsEmpty());
  EXPECT_THAT(orders[1].give_back, ElementsAre(2));
}

}  // namespace
}  // namespace cadre::engine::cluster
