#include "resources/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <stdexcept>

namespace cadre::resources {
namespace {

using ::testing::ElementsAre;

Cluster cluster_of(const std::vector<Resources>& machines) {
  Cluster cluster;
  NodeId id = 0;
  for (const Resources& machine : machines) cluster.add({.id = id++, .resources = machine});
  return cluster;
}

std::vector<NodeId> nodes_of(const std::optional<std::vector<Place>>& places) {
  std::vector<NodeId> nodes;
  for (const Place& place : places.value()) nodes.push_back(place.node);
  return nodes;
}

TEST(Cluster, OneNodeSaysWhatItsLedgerSays) {
  Cluster cluster(Resources{.cpus = 4, .gpus = 1, .custom = {{"license", 2}}});
  EXPECT_EQ(cluster.acquire({.cpus = 1.5, .gpus = 0.5}), (Place{0, {0}}));
  EXPECT_EQ(cluster.usage(), "1.5/4 CPUs, 0.5/1 GPUs, 0/2 license");
  EXPECT_EQ(cluster.shortage({.cpus = 8, .gpus = 2}), "8 cpus (there are 4), 2 gpus (there are 1)");
  EXPECT_EQ(cluster.shortage({.cpus = 4}), "");
  EXPECT_EQ(cluster.total(), (Resources{.cpus = 4, .gpus = 1, .custom = {{"license", 2}}}));
}

TEST(Cluster, AWorkerIsPlacedOnTheFullestNodeThatHasRoom) {
  Cluster cluster = cluster_of({{.cpus = 4}, {.cpus = 2}, {.cpus = 4}});
  EXPECT_EQ(cluster.acquire({.cpus = 1})->node, 1u);
  EXPECT_EQ(cluster.acquire({.cpus = 3})->node, 0u);
  EXPECT_EQ(cluster.acquire({.cpus = 2})->node, 2u);
  EXPECT_EQ(cluster.acquire({.cpus = 1})->node, 0u);  // as full as node 1
  EXPECT_FALSE(cluster.acquire({.cpus = 3}));
}

TEST(Cluster, WhoNeedsNoGpuLeavesThemToOthers) {
  Cluster cluster = cluster_of({{.cpus = 2, .gpus = 1}, {.cpus = 8}});
  EXPECT_EQ(cluster.acquire({.cpus = 1})->node, 1u);
  EXPECT_EQ(cluster.acquire({.cpus = 1, .gpus = 1})->node, 0u);
}

TEST(Cluster, NothingIsPlacedOnANodeThatDrainsOrHasLeft) {
  Cluster cluster = cluster_of({{.cpus = 2}, {.cpus = 2}});
  ASSERT_EQ(cluster.acquire({.cpus = 1})->node, 0u);
  cluster.drain(0);
  EXPECT_FALSE(cluster.is_free({.cpus = 1}, Only{0}));
  EXPECT_FALSE(cluster.acquire({.cpus = 1}, Only{0}));
  EXPECT_EQ(cluster.acquire({.cpus = 1})->node, 1u);
  EXPECT_EQ(cluster.usage(), "2/4 CPUs, 0/0 GPUs");
  cluster.release({.cpus = 1}, {0, {}});
  EXPECT_EQ(cluster.usage(), "1/4 CPUs, 0/0 GPUs");
  cluster.remove(0);
  cluster.release({.cpus = 1}, {0, {}});  // of a worker whose end is told late
  EXPECT_EQ(cluster.usage(), "1/2 CPUs, 0/0 GPUs");
  cluster.remove(1);
  EXPECT_FALSE(cluster.is_free({.cpus = 1}));
  cluster.add({.id = 2, .resources = {.cpus = 1}});
  EXPECT_EQ(cluster.acquire({.cpus = 1})->node, 2u);
  EXPECT_THROW(cluster.add({.id = 2}), std::logic_error);
}

TEST(Cluster, AWorkerOnANodeThatDrainsIsCounted) {
  Cluster cluster = cluster_of({{.cpus = 2, .gpus = 2}});
  cluster.drain(0);
  cluster.occupy({.cpus = 1, .gpus = 1}, {0, {1}});
  EXPECT_EQ(cluster.usage(), "1/2 CPUs, 1/2 GPUs");
}

TEST(Cluster, WhatIsThereAlreadyIsCountedAlsoWhereThereIsNoRoomForIt) {
  Cluster cluster = cluster_of({{.cpus = 3, .gpus = 1}});  // it had more
  for (int workers = 0; workers < 2; ++workers) cluster.occupy({.cpus = 2, .gpus = 0.75}, {0, {0}});
  EXPECT_EQ(cluster.usage(), "4/3 CPUs, 1.5/1 GPUs");
  EXPECT_FALSE(cluster.is_free({.cpus = 1}));
  EXPECT_FALSE(cluster.is_free({.cpus = 0, .gpus = 0.25}));
  cluster.release({.cpus = 2, .gpus = 0.75}, {0, {0}});
  EXPECT_TRUE(cluster.is_free({.cpus = 1, .gpus = 0.25}));
}

TEST(Cluster, PackUsesOneNodeWhereItCanAndTheFewestElse) {
  Cluster cluster = cluster_of({{.cpus = 2}, {.cpus = 4}, {.cpus = 3}});
  const std::vector<Resources> two(2, {.cpus = 1});
  EXPECT_THAT(nodes_of(cluster.acquire_all(two, PlacementStrategy::pack)), ElementsAre(0, 0));
  EXPECT_THAT(nodes_of(cluster.acquire_all(std::vector<Resources>(5, {.cpus = 1}), PlacementStrategy::pack)),
              ElementsAre(1, 1, 1, 1, 2));
  EXPECT_EQ(cluster.usage(), "7/9 CPUs, 0/0 GPUs");
}

TEST(Cluster, SpreadUsesAsManyNodesAsThereAre) {
  Cluster cluster = cluster_of({{.cpus = 2}, {.cpus = 4}, {.cpus = 4}});
  EXPECT_THAT(nodes_of(cluster.acquire_all(std::vector<Resources>(4, {.cpus = 1}), PlacementStrategy::spread)),
              ElementsAre(1, 2, 0, 0));
}

TEST(Cluster, StrictSpreadUsesEachNodeOnce) {
  Cluster cluster = cluster_of({{.cpus = 4}, {.cpus = 4, .gpus = 1}});
  const std::vector<Resources> both{{.cpus = 1}, {.cpus = 1, .gpus = 1}};
  EXPECT_THAT(nodes_of(cluster.acquire_all(both, PlacementStrategy::strict_spread)), ElementsAre(0, 1));
  EXPECT_FALSE(cluster.acquire_all(std::vector<Resources>(3, {.cpus = 1}), PlacementStrategy::strict_spread));
}

TEST(Cluster, StrictPackUsesOneNodeOrNone) {
  Cluster cluster = cluster_of({{.cpus = 2}, {.cpus = 3}});
  EXPECT_THAT(nodes_of(cluster.acquire_all(std::vector<Resources>(3, {.cpus = 1}), PlacementStrategy::strict_pack)),
              ElementsAre(1, 1, 1));
  EXPECT_FALSE(cluster.acquire_all(std::vector<Resources>(3, {.cpus = 1}), PlacementStrategy::strict_pack));
}

TEST(Cluster, AGroupThatDoesNotFitTakesNothing) {
  using enum PlacementStrategy;
  for (const PlacementStrategy strategy : {pack, spread, strict_pack, strict_spread}) {
    Cluster cluster = cluster_of({{.cpus = 2}, {.cpus = 2}});
    EXPECT_FALSE(cluster.acquire_all(std::vector<Resources>(5, {.cpus = 1}), strategy));
    EXPECT_EQ(cluster.usage(), "0/4 CPUs, 0/0 GPUs");
  }
}

TEST(Cluster, AShortageIsSaidAgainstTheNodeThatComesNearest) {
  Cluster cluster = cluster_of({{.cpus = 2, .gpus = 2}, {.cpus = 4, .gpus = 2}, {.cpus = 64}});
  EXPECT_EQ(cluster.shortage({.cpus = 8, .gpus = 1}), "8 cpus (the largest node has 4)");
  EXPECT_EQ(cluster.shortage({.cpus = 32, .gpus = 1}), "32 cpus (the largest node has 4)");
  EXPECT_EQ(cluster.shortage({.cpus = 65}), "65 cpus (the largest node has 64)");
  EXPECT_EQ(cluster.shortage({.cpus = 64}), "");
  cluster.drain(2);
  EXPECT_EQ(cluster.shortage({.cpus = 64}), "64 cpus (the largest node has 4)");
  EXPECT_EQ(Cluster().shortage({.cpus = 1}), "1 cpus (there are 0)");
}

TEST(Cluster, LabelsAndKindsOfGpusChooseTheNode) {
  Cluster cluster = cluster_of({{.cpus = 4, .gpus = 1, .accelerator_type = "A100", .labels = {{"zone", "us"}}},
                                {.cpus = 4, .gpus = 1, .accelerator_type = "H100", .labels = {{"zone", "eu"}}}});
  EXPECT_EQ(cluster.acquire({.cpus = 1, .gpus = 1, .accelerator_type = "H100"})->node, 1u);
  EXPECT_EQ(cluster.acquire({.cpus = 1, .labels = {{"zone", "us"}}})->node, 0u);
}

// The index finds what a walk over all nodes finds, whatever has joined, drained, left and been used before.
TEST(Cluster, TheIndexMissesNoNode) {
  std::mt19937 random(1);
  Cluster cluster;
  std::map<NodeId, ResourceLedger> ledgers;  // of ready nodes
  std::vector<std::pair<Resources, Place>> held;
  NodeId next = 0;
  for (int step = 0; step < 20'000; ++step) {
    const Resources wanted{.cpus = static_cast<double>(random() % 3),
                           .gpus = std::array{0.0, 0.0, 0.5, 1.0, 2.0}[random() % 5]};
    const auto some = [&] {
      return std::next(ledgers.begin(), static_cast<std::ptrdiff_t>(random() % ledgers.size()));
    };
    switch (random() % 12) {
      case 0: {
        if (ledgers.size() > 6) break;
        const Resources machine{.cpus = static_cast<double>(1 + random() % 4),
                                .gpus = static_cast<double>(random() % 3)};
        cluster.add({.id = next, .resources = machine});
        ledgers.emplace(next++, machine);
        break;
      }
      case 1: {
        if (ledgers.size() < 3) break;
        const auto gone = some();
        random() % 2 == 0 ? cluster.drain(gone->first) : cluster.remove(gone->first);
        ledgers.erase(gone);
        break;
      }
      case 2:
      case 3:
      case 4:
      case 5:
      case 6: {
        if (held.empty()) break;
        std::swap(held[random() % held.size()], held.back());
        const auto [what, place] = held.back();
        held.pop_back();
        cluster.release(what, place);
        if (const auto found = ledgers.find(place.node); found != ledgers.end())
          found->second.release(what, place.gpus);
        break;
      }
      default: {
        const bool fits = std::ranges::any_of(ledgers, [&](const auto& one) { return one.second.is_free(wanted); });
        ASSERT_EQ(cluster.is_free(wanted), fits) << step;
        const std::optional<Place> place = cluster.acquire(wanted);
        ASSERT_EQ(place.has_value(), fits) << step;
        if (!place) break;
        ASSERT_EQ(ledgers.at(place->node).acquire(wanted), place->gpus) << step;
        held.emplace_back(wanted, *place);
      }
    }
  }
}

}  // namespace
}  // namespace cadre::resources
