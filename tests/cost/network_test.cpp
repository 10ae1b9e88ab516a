// Exchanges on a cluster of 4 GPUs a node and 2 nodes a pod, by figures that a reader can check by hand.
#include "ballast/cost/network.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <algorithm>

#include "ballast/base/error.h"

namespace ballast {
namespace {

ClusterSpec small_cluster() {
  return {.name = "small",
          .device = "none",
          .tiers = {{"node", 4, 100e9, 1e-6}, {"pod", 8, 10e9, 10e-6}, {"spine", 0, 1e9, 100e-6}},
          .memory_bytes = 1};
}

std::vector<int> stretch(int begin, int count, int stride = 1) {
  std::vector<int> gpus;
  for (int i = 0; i < count; ++i) gpus.push_back(begin + i * stride);
  return gpus;
}

TEST(Cluster, JoinsTwoGpusByTheInnermostTierThatHoldsBoth) {
  const ClusterSpec cluster = small_cluster();
  EXPECT_EQ(cluster.violations(), Violations{});
  EXPECT_EQ(cluster.tier_of(0, 3), 0u);
  EXPECT_EQ(cluster.tier_of(3, 4), 1u);
  EXPECT_EQ(cluster.tier_of(7, 8), 2u);
}

TEST(Cluster, NamesWhatIsWrongWithItsTiers) {
  ClusterSpec cluster = small_cluster();
  cluster.tiers[1].gpus = 6;
  cluster.tiers[2].bytes_per_second = 0;
  EXPECT_EQ(cluster.violations(), (Violations{"tier 2 (pod): gpus = 6: must be a multiple of the tier inside it, 4",
                                              "tier 3 (spine): bytes_per_second: must be over 0"}));
}

TEST(Network, PlacesAGroupByTier) {
  const ClusterSpec cluster = small_cluster();
  EXPECT_EQ(place_group(cluster, stretch(0, 4)).parts, (std::vector<int>{4, 1, 1}));
  EXPECT_EQ(place_group(cluster, stretch(0, 16)).parts, (std::vector<int>{4, 2, 2}));
  EXPECT_EQ(place_group(cluster, stretch(0, 4, 4)).parts, (std::vector<int>{1, 2, 2}));
  EXPECT_EQ(place_group(cluster, stretch(2, 1)).parts, (std::vector<int>{1, 1, 1}));
}

TEST(Network, ARingIsAsFastAsItsSlowestTierWithALaneForEachMemberBelowIt) {
  const ClusterSpec cluster = small_cluster();
  const auto ring = [&](const std::vector<int>& gpus, Collective operation) {
    return collective_seconds(cluster, place_group(cluster, gpus), operation, 8'000'000, CollectiveAlgorithm::ring);
  };
  EXPECT_NEAR(ring(stretch(0, 4), Collective::all_gather), 3e-6 + 6e6 / 100e9, 1e-12);
  // Two nodes: 7/8 of the bytes over four lanes of 10 GB/s; 6 hops inside, one across.
  EXPECT_NEAR(ring(stretch(0, 8), Collective::reduce_scatter), 6e-6 + 10e-6 + 7e6 / 40e9, 1e-12);
  // One GPU a node: one lane.
  EXPECT_NEAR(ring(stretch(0, 2, 4), Collective::all_gather), 10e-6 + 4e6 / 10e9, 1e-12);
  EXPECT_NEAR(ring(stretch(0, 8), Collective::all_reduce), 2 * ring(stretch(0, 8), Collective::all_gather), 1e-12);
}

TEST(Network, AHierarchyGathersItsLanesFirstAndThenSharesOutInsideTheNode) {
  const ClusterSpec cluster = small_cluster();
  const GroupPlacement two_nodes = place_group(cluster, stretch(0, 8));
  EXPECT_NEAR(
      collective_seconds(cluster, two_nodes, Collective::all_gather, 8'000'000, CollectiveAlgorithm::hierarchical),
      10e-6 + 1e6 / 10e9 + 3e-6 + 6e6 / 100e9, 1e-12);
}

TEST(Network, ATreeIsForAllReduceAndWinsWhereMessagesAreSmallAndGroupsLarge) {
  const ClusterSpec cluster = small_cluster();
  const GroupPlacement all = place_group(cluster, stretch(0, 512));
  const auto seconds = [&](CollectiveAlgorithm algorithm) {
    return collective_seconds(cluster, all, Collective::all_reduce, 1024, algorithm);
  };
  EXPECT_LT(seconds(CollectiveAlgorithm::tree), seconds(CollectiveAlgorithm::ring));
  EXPECT_LE(seconds(CollectiveAlgorithm::automatic), seconds(CollectiveAlgorithm::tree));
  EXPECT_THROW(collective_seconds(cluster, all, Collective::all_gather, 1024, CollectiveAlgorithm::tree), UserError);
}

TEST(Network, AMessageTakesTheTierBetweenItsEnds) {
  const ClusterSpec cluster = small_cluster();
  EXPECT_EQ(send_seconds(cluster, 1, 1, 1000), 0);
  EXPECT_NEAR(send_seconds(cluster, 0, 3, 1'000'000), 1e-6 + 1e-5, 1e-12);
  EXPECT_NEAR(send_seconds(cluster, 0, 9, 1'000'000), 100e-6 + 1e-3, 1e-12);
}

RC_GTEST_PROP(Network, TakesNoLessForMoreBytesOrASlowerTier, ()) {
  ClusterSpec cluster = small_cluster();
  const GroupPlacement group =
      place_group(cluster, stretch(0, 1 << *rc::gen::inRange(0, 6), 1 << *rc::gen::inRange(0, 3)));
  const auto operation = *rc::gen::element(Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter);
  const Bytes bytes = *rc::gen::inRange<Bytes>(0, 1 << 30);
  const Seconds before = collective_seconds(cluster, group, operation, bytes);
  RC_ASSERT(collective_seconds(cluster, group, operation, bytes + (1 << 20)) >= before);
  for (FabricTier& tier : cluster.tiers) tier.bytes_per_second /= 2;
  RC_ASSERT(collective_seconds(cluster, group, operation, bytes) >= before);
  RC_ASSERT(group.size() > 1 || before == 0);
}

TEST(Network, ReachesWhatWasMeasuredAtTheSizeOfTheMessage) {
  ClusterSpec cluster{.name = "c",
                      .device = "d",
                      .tiers = {{.name = "node", .gpus = 8, .bytes_per_second = 100e9, .latency = 0},
                                {.name = "network",
                                 .gpus = 0,
                                 .bytes_per_second = 10e9,
                                 .latency = 0,
                                 .share_by_bytes = {{1e6, 0.25}, {1e8, 0.75}}}},
                      .memory_bytes = 1};
  EXPECT_EQ(cluster.violations(), Violations{});
  EXPECT_NEAR(send_seconds(cluster, 0, 8, 1'000'000), 1e6 / 2.5e9, 1e-12);
  EXPECT_NEAR(send_seconds(cluster, 0, 8, 10'000'000), 1e7 / 5e9, 1e-12) << "half way in the logarithm";
  EXPECT_NEAR(send_seconds(cluster, 0, 8, 1'000), 1e3 / 2.5e9, 1e-15) << "the nearest below";
  EXPECT_NEAR(send_seconds(cluster, 0, 8, 1'000'000'000), 1e9 / 7.5e9, 1e-9) << "and above";
  EXPECT_NEAR(send_seconds(cluster, 0, 1, 1'000'000), 1e6 / 100e9, 1e-12) << "of its own tier alone";
  cluster.tiers[1].share_by_bytes = {{1e8, 0.75}, {1e6, 0.25}};
  EXPECT_EQ(cluster.violations().size(), 1U);
}

}  // namespace
}  // namespace ballast
