// Where trials have their resources on the nodes of a cluster.
#include "tune/trial_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tune/resource_needs.h"

namespace cadre::tune {
namespace {

using resources::Cluster;
using resources::NodeId;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Needs needs_of(PlacementGroup group) {
  return ResourceNeeds(with_resources(Trainable("any"), std::move(group))).usual();
}

Cluster cluster_of(const std::vector<Resources>& machines) {
  resources::NodeList list{.may_change = true};
  for (const Resources& machine : machines)
    list.nodes.push_back({.id = static_cast<NodeId>(list.nodes.size()), .name = "node", .resources = machine});
  return Cluster(list);
}

std::vector<NodeId> nodes_of(const std::vector<Share>& shares) {
  std::vector<NodeId> nodes;
  for (const Share& share : shares) nodes.push_back(share.place.node);
  return nodes;
}

TEST(TrialPlaces, PackedBundlesAreOnOneNodeWhereOneHasRoom) {
  Cluster cluster = cluster_of({{.cpus = 2}, {.cpus = 3}});
  const auto shares = acquire(cluster, needs_of({.bundles = {{.cpus = 1}, {.cpus = 1}, {.cpus = 1}}}));
  ASSERT_TRUE(shares);
  EXPECT_THAT(nodes_of(*shares), ElementsAre(1));
  EXPECT_EQ(shares->front().held.cpus, 3);
  EXPECT_EQ(shares->front().of_workers->cpus, 2);
}

TEST(TrialPlaces, PackedBundlesArePartedWhereNone) {
  Cluster cluster = cluster_of({{.cpus = 2}, {.cpus = 2}});
  const Needs needs = needs_of({.bundles = {{.cpus = 1}, {.cpus = 1}, {.cpus = 1}}});
  const auto shares = acquire(cluster, needs);
  ASSERT_TRUE(shares);
  EXPECT_THAT(*shares, SizeIs(2));
  EXPECT_EQ((*shares)[0].held.cpus + (*shares)[1].held.cpus, 3);
  EXPECT_EQ((*shares)[0].of_workers->cpus + (*shares)[1].of_workers->cpus, 2);
  EXPECT_FALSE(has_room(cluster, needs));
  release(cluster, *shares);
  EXPECT_EQ(cluster, cluster_of({{.cpus = 2}, {.cpus = 2}}));
  EXPECT_TRUE(has_room(cluster, needs));
  EXPECT_EQ(cluster, cluster_of({{.cpus = 2}, {.cpus = 2}})) << "asking changes nothing";
}

TEST(TrialPlaces, SpreadBundlesAreApart) {
  Cluster cluster = cluster_of({{.cpus = 4}, {.cpus = 4}});
  const std::vector<Resources> bundles{{.cpus = 0}, {.cpus = 1}, {.cpus = 1}};
  for (const PlacementStrategy strategy : {PlacementStrategy::spread, PlacementStrategy::strict_spread}) {
    const auto shares = acquire(cluster, needs_of({.bundles = bundles, .strategy = strategy}));
    ASSERT_TRUE(shares);
    EXPECT_THAT(*shares, SizeIs(2)) << "a trial without resources of its own is where its first worker is";
  }
  EXPECT_FALSE(acquire(cluster, needs_of({.bundles = {3, {.cpus = 1}}, .strategy = PlacementStrategy::strict_spread})));
  EXPECT_THAT(*acquire(cluster, needs_of({.bundles = {3, {.cpus = 1}}, .strategy = PlacementStrategy::spread})),
              SizeIs(2));
}

TEST(TrialPlaces, ThoseThatMustBeOnOneNodeWaitForOne) {
  Cluster cluster = cluster_of({{.cpus = 2}, {.cpus = 2}});
  const Needs needs = needs_of({.bundles = {3, {.cpus = 1}}, .strategy = PlacementStrategy::strict_pack});
  EXPECT_FALSE(has_room(cluster, needs));
  EXPECT_EQ(shortage(cluster, needs), "3 cpus (the largest node has 2)");
}

TEST(TrialPlaces, OneMachineHasAllOrNothing) {
  Cluster machine(Resources{.cpus = 2});
  EXPECT_FALSE(has_room(machine, needs_of({.bundles = {3, {.cpus = 1}}})));
  EXPECT_EQ(shortage(machine, needs_of({.bundles = {2, {.cpus = 1}}, .strategy = PlacementStrategy::strict_spread})),
            "strict_spread needs 2 machines, and there is one");
}

// Half GPUs of two workers would be one and a half on a node.
TEST(TrialPlaces, SharesOfGpusAreNotPartedBesideWholeOnes) {
  const Needs needs = needs_of({.bundles = {{.cpus = 0}, {.gpus = 0.5}, {.gpus = 0.5}, {.gpus = 1}}});
  Cluster small = cluster_of({{.cpus = 8, .gpus = 1}, {.cpus = 8, .gpus = 1}});
  EXPECT_FALSE(may_be_parted(small, needs));
  EXPECT_FALSE(has_room(small, needs));
  Cluster large = cluster_of({{.cpus = 8, .gpus = 2}});
  EXPECT_TRUE(has_room(large, needs));
}

TEST(TrialPlaces, EachNodeHasItsOwnGpus) {
  Cluster cluster = cluster_of({{.cpus = 8, .gpus = 2}, {.cpus = 8, .gpus = 2}});
  const auto shares = acquire(cluster, needs_of({.bundles = {{.cpus = 0}, {.gpus = 2}, {.gpus = 1}}}));
  ASSERT_TRUE(shares);
  EXPECT_THAT((*shares)[0].place.gpus, ElementsAre(0, 1));
  EXPECT_THAT((*shares)[1].place.gpus, ElementsAre(0));
}

TEST(TrialPlaces, AParkedWorkersPlacesAreFreeAgainWhenAllOfThemAre) {
  Cluster cluster = cluster_of({{.cpus = 1}, {.cpus = 1}});
  const auto shares = acquire(cluster, needs_of({.bundles = {2, {.cpus = 1}}}));
  ASSERT_TRUE(shares);
  release(cluster, *shares);
  EXPECT_TRUE(is_free_again(cluster, *shares));
  const auto other = cluster.acquire({.cpus = 1}, resources::Only{(*shares)[1].place.node});
  EXPECT_FALSE(is_free_again(cluster, *shares));
  cluster.release({.cpus = 1}, *other);
  cluster.drain((*shares)[0].place.node);
  EXPECT_FALSE(is_free_again(cluster, *shares));
}

TEST(TrialPlaces, WhatTheNodesNeverHaveIsNamed) {
  const Cluster cluster = cluster_of({{.cpus = 2}, {.cpus = 4}});
  EXPECT_THAT(shortage(cluster, needs_of({.bundles = {2, {.cpus = 3}}})), HasSubstr("no room for 2 bundles"));
  EXPECT_THAT(shortage(cluster, needs_of({.bundles = {2, {.cpus = 5}}})), HasSubstr("5 cpus (the largest node has 4)"));
  EXPECT_THAT(shortage(cluster, needs_of({.bundles = {3, {.cpus = 1}}, .strategy = PlacementStrategy::strict_spread})),
              HasSubstr("strict_spread needs 3 machines, and there are 2"));
  EXPECT_THAT(shortage(cluster, needs_of({.bundles = {{.cpus = 2}, {.cpus = 4}}})), IsEmpty());
}

}  // namespace
}  // namespace cadre::tune
