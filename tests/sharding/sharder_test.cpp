// Shard plans on small inputs a reader can check by hand, and what holds at any lengths and any degree.
#include "ballast/sharding/sharder.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

namespace ballast {
namespace {

std::vector<Tokens> boundaries(const std::vector<Tokens>& lengths) {
  std::vector<Tokens> bounds{0};
  for (const Tokens length : lengths) bounds.push_back(bounds.back() + length);
  return bounds;
}

std::vector<std::int64_t> pairs_per_rank(const ShardPlan& plan) {
  std::vector<std::int64_t> pairs;
  for (int rank = 0; rank < plan.num_ranks(); ++rank) {
    pairs.push_back(0);
    for (const AttentionBlock& block : plan.attention_blocks(rank)) pairs.back() += attention_pairs(block);
  }
  return pairs;
}

const std::unique_ptr<CostModel> kCost = make_synthetic_cost(24576, 1);

TEST(PerSequence, GivesARankOneEarlyAndOneLateChunk) {
  const ShardPlan plan = shard_per_sequence({0, 8}, 2);
  EXPECT_EQ(plan.local_to_packed(0), (std::vector<Tokens>{0, 1, 6, 7}));
  EXPECT_EQ(plan.local_to_packed(1), (std::vector<Tokens>{2, 3, 4, 5}));
}

TEST(PerSequence, IsUnevenOverDocumentsWherePerDocumentIsEven) {
  EXPECT_EQ(pairs_per_rank(shard_per_sequence(boundaries({4, 12}), 2)), (std::vector<std::int64_t>{52, 36}));
  EXPECT_EQ(pairs_per_rank(shard_per_document(boundaries({4, 12}), 2)), (std::vector<std::int64_t>{44, 44}));
}

TEST(PerDocument, PositionsRestartInEveryDocument) {
  const ShardPlan plan = shard_per_document({0, 4, 8}, 2);
  EXPECT_EQ(plan.local_positions(0), (std::vector<Tokens>{0, 3, 0, 3}));
  EXPECT_EQ(plan.local_positions(1), (std::vector<Tokens>{1, 2, 1, 2}));
}

TEST(PerDocument, DealsLeftOverTokensRoundRobinFromDocumentToDocument) {
  // 7 = 4 in chunks and 3 left over: ranks 0, 1, 0; then 5 = 4 and 1 left over: rank 1.
  const ShardPlan plan = shard_per_document(boundaries({7, 5}), 2);
  EXPECT_EQ(plan.local_to_packed(0), (std::vector<Tokens>{0, 3, 4, 6, 7, 10}));
  EXPECT_EQ(plan.local_to_packed(1), (std::vector<Tokens>{1, 2, 5, 8, 9, 11}));
}

TEST(PerDocument, ADocumentShorterThanTheRanksLeavesSomeEmpty) {
  const ShardPlan plan = shard_per_document({0, 3}, 4);
  EXPECT_EQ(plan.tokens_per_rank(), (std::vector<Tokens>{1, 1, 1, 0}));
  EXPECT_TRUE(plan.attention_blocks(3).empty());
}

TEST(PerDocument, OneDocumentFitsItsRanksExactly) {
  for (const Tokens count : shard_per_document({0, 24576}, 6).tokens_per_rank()) EXPECT_EQ(count, 4096);
}

TEST(AttentionPairs, OfDocumentsOverAWindowAreNotThoseOfOneLongDocument) {
  const std::int64_t many = pairs_per_rank(shard_per_document(boundaries(std::vector<Tokens>(32, 1024)), 1))[0];
  const std::int64_t one = pairs_per_rank(shard_per_document(boundaries({32768}), 1))[0];
  EXPECT_EQ(many, 32L * 1024 * 1025 / 2);
  EXPECT_EQ(one, 32768L * 32769 / 2);
}

TEST(Adaptive, TakesPerDocumentWherePerSequenceIsUneven) {
  EXPECT_EQ(shard_adaptive(boundaries({4, 12}), 2, *kCost).sharding, "per_document");
}

TEST(Adaptive, TakesPerSequenceOnATie) {
  EXPECT_EQ(shard_adaptive({0, 8}, 2, *kCost).sharding, "per_sequence");
  EXPECT_EQ(shard_adaptive({0}, 4, *kCost).sharding, "per_sequence");
}

TEST(MakeShardPlan, NamesTheNearestStrategy) {
  try {
    make_shard_plan("per-docment", {0, 8}, 2, *kCost);
    FAIL() << "an unknown strategy was taken";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "sharding = \"per-docment\": must be one of per-sequence, per-document, adaptive, hybrid, ring, "
                 "hybrid-dp, zeppelin, auto; did you mean \"per-document\"?");
  }
  EXPECT_THROW(make_shard_plan("per-document", {0, 8}, 0, *kCost), UserError);
}

rc::Gen<std::vector<Tokens>> any_boundaries() {
  return rc::gen::map(
      rc::gen::container<std::vector<Tokens>>(rc::gen::oneOf(
          rc::gen::inRange<Tokens>(0, 4), rc::gen::inRange<Tokens>(0, 100), rc::gen::inRange<Tokens>(0, 20000))),
      boundaries);
}

rc::Gen<int> any_degree() {
  return rc::gen::oneOf(rc::gen::inRange(1, 10), rc::gen::inRange(1, 1025), rc::gen::element(2, 7, 16, 255, 1024));
}

RC_GTEST_PROP(EverySharder, PutsEveryTokenOnOneRankWithCountsAtMostOneApart, ()) {
  const std::vector<Tokens> bounds = *any_boundaries();
  const int ranks = *any_degree();
  for (const std::string& name : gathering_sharding_names()) {
    const ShardPlan plan = make_shard_plan(name, bounds, ranks, *kCost);
    RC_ASSERT(plan.num_ranks() == ranks);
    RC_ASSERT(plan.cu_seqlens == bounds);
    RC_ASSERT(plan.violations(1).empty());
  }
}

RC_GTEST_PROP(EverySharder, KeepsTheAttentionWorkOfTheWhole, ()) {
  const std::vector<Tokens> bounds = *any_boundaries();
  const int ranks = *any_degree();
  std::int64_t whole = 0;
  for (std::size_t d = 0; d + 1 < bounds.size(); ++d) {
    const Tokens length = bounds[d + 1] - bounds[d];
    whole += length * (length + 1) / 2;
  }
  for (const std::string& name : gathering_sharding_names()) {
    const auto pairs = pairs_per_rank(make_shard_plan(name, bounds, ranks, *kCost));
    RC_ASSERT(std::accumulate(pairs.begin(), pairs.end(), std::int64_t{0}) == whole);
  }
}

RC_GTEST_PROP(PerDocument, IsEvenInAttentionPairsUpToTheLeftOverTokens, ()) {
  const std::vector<Tokens> bounds = *any_boundaries();
  const int ranks = *rc::gen::inRange(1, 17);
  const auto pairs = pairs_per_rank(shard_per_document(bounds, ranks));
  std::int64_t slack = 0;  // at most two left-over tokens of a document on a rank
  for (std::size_t d = 0; d + 1 < bounds.size(); ++d) slack += 2 * (bounds[d + 1] - bounds[d]);
  const auto [low, high] = std::minmax_element(pairs.begin(), pairs.end());
  RC_ASSERT(*high - *low <= slack);
}

TEST(Hybrid, KeepsShortDocumentsWholeAndCutsLongOnes) {
  const ShardPlan plan = shard_whole_below(boundaries({8, 3, 3, 2, 4}), 2, 5, *kCost);
  EXPECT_EQ(plan.tokens_per_rank(), (std::vector<Tokens>{10, 10}));
  // 8 in chunks of 2 over both ranks; then 4 and 2 on one, 3 and 3 on the other.
  EXPECT_EQ(plan.ranges[0], (std::vector<TokenRange>{{0, 2}, {6, 8}, {14, 20}}));
  EXPECT_EQ(plan.ranges[1], (std::vector<TokenRange>{{2, 6}, {8, 14}}));
}

TEST(Hybrid, CutsAShortDocumentWhereNoRankHasRoomForIt) {
  const ShardPlan plan = shard_whole_below(boundaries({3, 3, 3}), 2, 100, *kCost);
  EXPECT_EQ(plan.tokens_per_rank(), (std::vector<Tokens>{5, 4}));
  EXPECT_EQ(plan.violations(1), Violations{});
}

RC_GTEST_PROP(EverySharder, KnowsWhetherGatheredRowsAreInPackedOrder, ()) {
  const std::vector<Tokens> bounds = *any_boundaries();
  const std::string name = *rc::gen::elementOf(sharding_names());
  const ShardPlan plan = make_shard_plan(name, bounds, *rc::gen::inRange(1, 5), *kCost);
  const std::vector<Tokens> rows = plan.packed_to_gathered();
  RC_ASSERT(plan.gathers_in_order() == std::is_sorted(rows.begin(), rows.end()));
}

RC_GTEST_PROP(Hybrid, KeepsCountsAtMostOneApartAtAnyThreshold, ()) {
  const std::vector<Tokens> bounds = *any_boundaries();
  const ShardPlan plan = shard_whole_below(bounds, *any_degree(), *rc::gen::inRange<Tokens>(0, 20001), *kCost);
  RC_ASSERT(plan.violations(1).empty());
}

RC_GTEST_PROP(Hybrid, IsNeverPredictedSlowerThanAdaptive, ()) {
  const std::vector<Tokens> bounds = *any_boundaries();
  const int ranks = *rc::gen::inRange(1, 65);
  RC_ASSERT(predict_slowest(shard_hybrid(bounds, ranks, *kCost), *kCost) <=
            predict_slowest(shard_adaptive(bounds, ranks, *kCost), *kCost));
}

RC_GTEST_PROP(Adaptive, IsNeverPredictedSlowerThanTheBetterOfTheTwo, ()) {
  const std::vector<Tokens> bounds = *any_boundaries();
  const int ranks = *rc::gen::inRange(1, 65);
  RC_ASSERT(predict_slowest(shard_adaptive(bounds, ranks, *kCost), *kCost) ==
            std::min(predict_slowest(shard_per_sequence(bounds, ranks), *kCost),
                     predict_slowest(shard_per_document(bounds, ranks), *kCost)));
}

}  // namespace
}  // namespace ballast
