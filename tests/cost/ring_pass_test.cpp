// One pass of attention in rings by hand: what hides, what is waited for, and how messages share lanes.
#include "ballast/cost/ring_pass.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/sharding/linked_cost.h"

namespace ballast {
namespace {

using testing::LinkedCost;

// Documents of `length` tokens, each in a ring over all ranks, in 2 G even chunks.
ShardPlan rings(int ranks, int per_node, const std::vector<std::vector<int>>& of_documents, Tokens length) {
  ShardPlan plan{.sharding = "by hand", .cu_seqlens = {0}, .exchange = KvExchange::rings, .ranks_per_node = per_node};
  plan.ranges.resize(static_cast<std::size_t>(ranks));
  for (std::size_t d = 0; d < of_documents.size(); ++d) {
    const Tokens begin = plan.cu_seqlens.back();
    plan.cu_seqlens.push_back(begin + length);
    const auto size = static_cast<Tokens>(of_documents[d].size());
    for (Tokens c = 0; c < 2 * size; ++c) {
      auto& ranges = plan.ranges[static_cast<std::size_t>(
          of_documents[d][static_cast<std::size_t>(std::min(c, 2 * size - 1 - c))])];
      const TokenRange chunk{begin + c * length / (2 * size), begin + (c + 1) * length / (2 * size)};
      if (!ranges.empty() && ranges.back().end == chunk.begin)
        ranges.back().end = chunk.end;
      else
        ranges.push_back(chunk);
    }
    if (size > 1) plan.rings.push_back({of_documents[d], {d}});
  }
  EXPECT_EQ(plan.violations(), Violations{});
  return plan;
}

Seconds forward_end(const ShardPlan& plan, const CostModel& cost) {
  const std::vector<Seconds> ends = ring_passes(plan, cost)[0].run(std::vector<Seconds>(plan.ranges.size(), 0));
  return *std::max_element(ends.begin(), ends.end());
}

TEST(RingPass, TakesWhatIsComputedWhereTheLinksAreFree) {
  const LinkedCost cost(CpLinks{});
  const ShardPlan plan = rings(4, 0, {{0, 1, 2, 3}}, 8000);
  const double pairs = 8000.0 * 8001 / 2;
  EXPECT_NEAR(forward_end(plan, cost), pairs * 1e-8 / 3 / 4, 1e-9);
  const auto backward = ring_passes(plan, cost)[1];
  for (const Seconds end : backward.run({0, 0, 0, 0})) EXPECT_NEAR(end, 2 * pairs * 1e-8 / 3 / 4, 1e-9);
}

TEST(RingPass, TakesAsLongAsItsMessagesWhereTheyAreSlower) {
  // Two ranks a node, one card each of 1 MB/s: rounds wait for 1,000 tokens' keys of 1,000 bytes, one second each.
  const LinkedCost cost({.ranks_per_node = 1, .lanes_per_node = 1, .lane_bytes_per_second = 1e6}, 0);
  EXPECT_NEAR(forward_end(rings(4, 1, {{0, 1, 2, 3}}, 4000), cost), 3, 1e-9);
  // Backward the gradients of twice the bytes follow: keys of rounds 1 to 3, one second each, and gradients from round
  // 1 on, over the same cards.
  const auto backward = ring_passes(rings(4, 1, {{0, 1, 2, 3}}, 4000), cost)[1];
  for (const Seconds end : backward.run({0, 0, 0, 0})) EXPECT_NEAR(end, 9, 1.01);
}

TEST(RingPass, LocalDocumentsFillTheGapsOfTheRing) {
  // The ring waits one second for its second round; each rank has 0.9 s of documents of its own meanwhile.
  const CpLinks links{.ranks_per_node = 1, .lanes_per_node = 1, .lane_bytes_per_second = 1e6};
  const LinkedCost cost(links, 1e-9);
  ShardPlan ring = rings(2, 1, {{0, 1}}, 2000);
  const Seconds alone = forward_end(ring, cost);
  ShardPlan filled = rings(2, 1, {{0, 1}}, 2000);
  for (int d = 0; d < 40; ++d) {
    const Tokens begin = filled.cu_seqlens.back();
    filled.cu_seqlens.push_back(begin + 2000);
    filled.ranges[static_cast<std::size_t>(d % 2)].push_back({begin, begin + 2000});
  }
  ASSERT_EQ(filled.violations(), Violations{});
  const Seconds local = 20 * 2000.0 * 2001 / 2 * 1e-9 / 3;
  EXPECT_GT(alone, 1);
  EXPECT_NEAR(forward_end(filled, cost), alone + local / 2, 0.01) << "half of it runs before the wait, in the gap";
}

TEST(RingPass, TwoMessagesOverOneCardTakeTwiceAsLongAndRoutedOnesShareTheCardsOfTheNode) {
  // Ranks 0 and 1 of a node share a card.
  CpLinks links{.ranks_per_node = 2, .lanes_per_node = 1, .lane_bytes_per_second = 1e6};
  EXPECT_NEAR(forward_end(rings(4, 2, {{0, 2}, {1, 3}}, 2000), LinkedCost(links, 0)), 2, 1e-9);
  EXPECT_NEAR(forward_end(rings(4, 2, {{0, 2}}, 2000), LinkedCost(links, 0)), 1, 1e-9);
  links.lanes_per_node = 2;
  EXPECT_NEAR(forward_end(rings(4, 2, {{0, 2}, {1, 3}}, 2000), LinkedCost(links, 0)), 1, 1e-9);
  links.routed = true;
  links.chunk_bytes = 1;
  EXPECT_NEAR(forward_end(rings(4, 2, {{0, 2}}, 2000), LinkedCost(links, 0)), 0.5, 1e-6);
}

TEST(RingPass, ARankThatArrivesLateIsWaitedForByItsRingOnly) {
  const LinkedCost cost(CpLinks{}, 1e-9);
  const ShardPlan plan = rings(4, 0, {{0, 1}, {2, 3}}, 2000);
  const RingPass forward = ring_passes(plan, cost)[0];
  const std::vector<Seconds> together = forward.run({0, 0, 0, 0});
  std::vector<RingSpan> spans;
  const std::vector<Seconds> late = forward.run({0, 5, 0, 0}, &spans);
  EXPECT_GT(late[0], 5);
  EXPECT_EQ(late[2], together[2]);
  EXPECT_EQ(late[3], together[3]);
  const auto waits = std::find_if(spans.begin(), spans.end(), [](const RingSpan& span) {
    return span.rank == 0 && span.kind == RingSpan::Kind::await_ring;
  });
  ASSERT_NE(waits, spans.end());
  EXPECT_NEAR(waits->end, 5, 1e-6);
}

TEST(MessageCost, TakesAsManyProxiesAsMakeItFastest) {
  const CpLinks links = testing::slow_network();
  EXPECT_EQ(message_cost(links, 0, 1, 1 << 23).proxies, 0);
  EXPECT_EQ(message_cost(links, 0, 4, 1 << 23).proxies, 4);
  EXPECT_EQ(message_cost(links, 0, 4, 100).proxies, 1) << "latency counts, not bytes";
  CpLinks slow_inside = links;
  slow_inside.node_bytes_per_second = 5e7;
  EXPECT_EQ(message_cost(slow_inside, 0, 4, 1 << 23).proxies, 1) << "2 b_intra is more than b_inter";
  const Routing routing = routing_of(links);
  EXPECT_EQ(routing.violations(8), Violations{});
  EXPECT_EQ(routing.proxies(0, 4, 1 << 23), 4);
  EXPECT_EQ(routing.proxies(0, 1, 1 << 23), 1);
}

TEST(MessageCost, ASlowCardHoldsUpWhatIsRoutedOverIt) {
  CpLinks links = testing::slow_network();
  links.lane_rates = {1e8, 1e8, 1e8, 1e6};
  EXPECT_EQ(message_cost(links, 0, 4, 1 << 23).proxies, 2) << "cards 0 and 2, not the slow one";
  EXPECT_GT(message_cost(links, 3, 4, 1 << 23).total(), 1);
  const Routing routing = routing_of(links);
  EXPECT_EQ(routing.violations(8), Violations{});
  for (int from = 0; from < 4; ++from) {
    for (int to = 4; to < 8; ++to) {
      EXPECT_EQ(routing.proxies(from, to, 1 << 23), message_cost(links, from, to, 1 << 23).proxies)
          << "messages go as they are priced, from " << from << " to " << to;
    }
  }
}

}  // namespace
}  // namespace ballast
