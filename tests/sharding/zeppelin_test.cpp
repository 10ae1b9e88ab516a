// Where documents go: zones, rings as large as pays, capacity, moves; at any lengths, degree and links.
#include "ballast/sharding/zeppelin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>

#include "ballast/cost/ring_pass.h"
#include "ballast/cost/zones.h"
#include "tests/sharding/linked_cost.h"

namespace ballast {
namespace {

using ::testing::HasSubstr;
using testing::LinkedCost;
using testing::slow_network;

std::vector<Tokens> boundaries(const std::vector<Tokens>& lengths) {
  std::vector<Tokens> bounds{0};
  for (const Tokens length : lengths) bounds.push_back(bounds.back() + length);
  return bounds;
}

TEST(Zones, BeginWhereARingOfTwoHidesItsMessages) {
  const LinkedCost cost(slow_network());
  const Zones zones = find_zones(cost, 1 << 20);
  // A/4 against two messages of keys and one of gradients, of half the tokens: (n^2/2)(1e-8)/4 = 2000 n/1e9 + latency.
  EXPECT_NEAR(static_cast<double>(zones.intra_node), 1600, 5);
  EXPECT_GT(zones.inter_node, 2 * zones.intra_node);  // the network is ten times slower, and four cards share a message
  for (const auto& [length, across] : {std::pair{zones.intra_node, false}, {zones.inter_node, true}}) {
    const auto hidden = [&, across = across](Tokens n) {
      const AttentionBlock whole{.queries = {0, n}, .keys = {0, n}};
      const auto [forward, backward] = cost.attention_passes(whole);
      return (forward + backward) / 4 >= round_transfer(cost, cost.cp_links(), (n + 1) / 2, across);
    };
    EXPECT_TRUE(hidden(length));
    EXPECT_FALSE(hidden(length - 2));
  }
}

TEST(Zones, AFreeNetworkMakesOneZoneAndADeadSlowOneKeepsAllLocal) {
  EXPECT_EQ(find_zones(LinkedCost({.ranks_per_node = 4, .lanes_per_node = 4}), 1 << 20).inter_node, 1);
  CpLinks dead = slow_network();
  dead.lane_bytes_per_second = dead.node_bytes_per_second = 1;
  const Zones none = find_zones(LinkedCost(dead), 1 << 20);
  EXPECT_EQ(none.intra_node, -1);
  EXPECT_EQ(none.inter_node, -1);
}

TEST(Zeppelin, KeepsEverythingLocalWhereTheNetworkIsDeadSlowAndItFits) {
  CpLinks dead = slow_network();
  dead.lane_bytes_per_second = dead.node_bytes_per_second = 1;
  const auto cu_seqlens = boundaries({6000, 5000, 4000, 3000, 3000, 2000, 2000, 2000, 1000, 1000});
  const ShardPlan plan = shard_zeppelin(cu_seqlens, 8, LinkedCost(dead), {.rank_tokens = 7000}).plan;
  EXPECT_TRUE(plan.rings.empty());
  EXPECT_TRUE(plan.moves.empty());
}

TEST(Zeppelin, CutsOneLongSequenceOverAllRanksAndLeavesShortOnesWhole) {
  const LinkedCost cost(slow_network());
  const ShardPlan plan = shard_zeppelin(boundaries({200000, 300, 300, 300}), 8, cost).plan;
  ASSERT_EQ(plan.rings.size(), 1U);
  EXPECT_EQ(plan.rings[0].ranks, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(plan.rings[0].documents, (std::vector<std::size_t>{0}));
  EXPECT_EQ(plan.queue_of(plan.rings[0]), AttentionQueue::inter_node);
}

TEST(Zeppelin, ASequenceThatPaysInsideANodeOnlyStaysThere) {
  CpLinks links = slow_network();
  links.lane_bytes_per_second = 1e6;
  links.node_bytes_per_second = 1e12;
  std::vector<Tokens> lengths(2, 20000);
  const ShardPlan plan = shard_zeppelin(boundaries(lengths), 8, LinkedCost(links)).plan;
  EXPECT_FALSE(plan.rings.empty());
  for (const Ring& ring : plan.rings) EXPECT_EQ(plan.queue_of(ring), AttentionQueue::intra_node);
}

TEST(Zeppelin, ARankInARingHoldsAnEarlyAndALateChunk) {
  const LinkedCost cost(slow_network());
  const ShardPlan plan = shard_zeppelin(boundaries({160000}), 8, cost).plan;
  EXPECT_EQ(plan.ranges[0], (std::vector<TokenRange>{{0, 10000}, {150000, 160000}}));
  EXPECT_EQ(plan.ranges[7], (std::vector<TokenRange>{{70000, 90000}}));
}

TEST(Zeppelin, SaysByHowManyTokensASequenceIsTooLong) {
  const LinkedCost cost(slow_network());
  try {
    shard_zeppelin(boundaries({100, 10000}), 8, cost, {.rank_tokens = 1000});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("8 ranks hold 8000 tokens, a sequence has 10000: 2000 too many"));
  }
}

TEST(Zeppelin, OneRankInAllHoldsEverythingAndAsksForNoLink) {
  const ShardPlan plan = shard_zeppelin(boundaries({5, 7}), 1, *make_synthetic_cost(1, 1)).plan;
  EXPECT_TRUE(plan.rings.empty());
  EXPECT_EQ(plan.num_tokens(0), 12);
}

CpLinks random_links() {
  CpLinks links;
  links.ranks_per_node = *rc::gen::element(0, 2, 3, 4);
  links.lanes_per_node = links.ranks_per_node == 4 ? *rc::gen::element(1, 2, 4) : 1;
  links.lane_bytes_per_second = *rc::gen::element(1.0, 1e6, 1e8, 1e10);
  links.node_bytes_per_second = *rc::gen::element(1.0, 1e8, 1e10);
  links.lane_latency = *rc::gen::element(0.0, 1e-4);
  links.routed = *rc::gen::arbitrary<bool>();
  return links;
}

std::vector<Tokens> random_boundaries() {
  auto lengths = *rc::gen::container<std::vector<Tokens>>(
      rc::gen::oneOf(rc::gen::element<Tokens>(0, 1, 2, 7), rc::gen::inRange<Tokens>(0, 3000)));
  if (lengths.empty()) lengths.push_back(1);
  return boundaries(lengths);
}

RC_GTEST_PROP(Placement, EveryPlanIsValidWithinCapacityAndEvenAfterItsMoves, ()) {
  const LinkedCost cost(random_links());
  const auto cu_seqlens = random_boundaries();
  const int ranks = *rc::gen::inRange(1, 13);
  const Tokens tight = (cu_seqlens.back() + ranks - 1) / ranks;
  const Tokens capacity = *rc::gen::element<Tokens>(0, tight, tight + 1, tight * 2 + 5);
  for (const std::string name : {"ring", "hybrid-dp", "zeppelin", "auto"}) {
    const ShardPlan plan = make_shard_plan(name, cu_seqlens, ranks, cost, {.rank_tokens = capacity});
    RC_ASSERT(plan.violations() == Violations{});
    std::int64_t pairs = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      for (const AttentionBlock& block : plan.attention_blocks(rank)) pairs += attention_pairs(block);
    }
    for (std::size_t d = 0; d + 1 < cu_seqlens.size(); ++d) {
      const Tokens length = cu_seqlens[d + 1] - cu_seqlens[d];
      pairs -= length * (length + 1) / 2;
    }
    RC_ASSERT(pairs == 0);
    RC_ASSERT(plan == make_shard_plan(name, cu_seqlens, ranks, cost, {.rank_tokens = capacity}));
    if (name == "zeppelin" && capacity > 0) {
      for (const Tokens tokens : plan.tokens_per_rank()) RC_ASSERT(tokens <= capacity);
    }
    if (plan.moves.empty()) continue;
    Tokens least = std::numeric_limits<Tokens>::max();
    Tokens most = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      least = std::min(least, plan.linear_tokens(rank));
      most = std::max(most, plan.linear_tokens(rank));
    }
    RC_ASSERT(most - least <= 1);
  }
}

RC_GTEST_PROP(Placement, NoPlanIsFasterThanAnEvenShareWherePiecesAreNoFasterAndAutoIsTheFastest, ()) {
  const LinkedCost cost(random_links());
  const auto cu_seqlens = random_boundaries();
  const int ranks = *rc::gen::inRange(2, 9);
  const Seconds even_share = layer_even_share(cu_seqlens, ranks, cost);
  const Seconds chosen = predict_slowest_layer(shard_auto(cu_seqlens, ranks, cost), cost);
  for (const SharderTrial& trial : try_all_sharders(cu_seqlens, ranks, cost)) {
    const double most_tokens_short = 1e-6;  // of rounding a rank's tokens up
    RC_ASSERT(trial.slowest >= even_share - most_tokens_short);
    RC_ASSERT(chosen <= trial.slowest);
  }
}

RC_GTEST_PROP(Moves, HappenInsideNodesAsFarAsTheyCan, ()) {
  const LinkedCost cost(random_links());
  ShardPlan plan = shard_hybrid_dp(random_boundaries(), *rc::gen::inRange(1, 13), cost);
  add_moves(plan);
  RC_ASSERT(plan.violations() == Violations{});
  std::vector<Tokens> surplus(static_cast<std::size_t>(plan.num_ranks()), 0);  // by node
  Tokens across = 0;
  for (const TokenMove& move : plan.moves) {
    if (plan.node_of(move.from) != plan.node_of(move.to)) across += move.tokens;
    surplus[static_cast<std::size_t>(plan.node_of(move.from))] += move.tokens;
    surplus[static_cast<std::size_t>(plan.node_of(move.to))] -= move.tokens;
  }
  Tokens least = 0;
  for (const Tokens tokens : surplus) least += std::max<Tokens>(0, tokens);
  RC_ASSERT(across == least);
}

}  // namespace
}  // namespace ballast
