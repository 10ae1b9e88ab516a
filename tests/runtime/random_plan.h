// Random packed micro-batches and random ways to shard them, most of which no strategy would choose: the engine must
// execute any plan.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <vector>

#include "ballast/ir/shard_plan.h"

namespace ballast::testing {

inline std::vector<Tokens> random_boundaries(int max_documents, Tokens max_length) {
  const auto lengths = *rc::gen::container<std::vector<Tokens>>(
      rc::gen::oneOf(rc::gen::element<Tokens>(0, 1, 2), rc::gen::inRange<Tokens>(0, max_length + 1)));
  std::vector<Tokens> cu_seqlens{0};
  for (std::size_t i = 0; i < lengths.size() && i < static_cast<std::size_t>(max_documents); ++i) {
    cu_seqlens.push_back(cu_seqlens.back() + lengths[i]);
  }
  return cu_seqlens;
}

// Runs of random length, each to a random rank: some ranks hold nothing, ranges cross document boundaries.
inline ShardPlan random_plan(const std::vector<Tokens>& cu_seqlens, int num_ranks) {
  ShardPlan plan{"random", cu_seqlens, std::vector<std::vector<TokenRange>>(static_cast<std::size_t>(num_ranks))};
  const auto longest = *rc::gen::element<Tokens>(1, 3, 16, 64);
  for (Tokens at = 0; at < plan.num_tokens();) {
    const Tokens end = std::min(plan.num_tokens(), at + *rc::gen::inRange<Tokens>(1, longest + 1));
    auto& ranges = plan.ranges[static_cast<std::size_t>(*rc::gen::inRange(0, num_ranks))];
    if (!ranges.empty() && ranges.back().end == at)
      ranges.back().end = end;
    else
      ranges.push_back({at, end});
    at = end;
  }
  RC_ASSERT(plan.violations().empty());
  return plan;
}

// Some tokens of some ranks to others, in any amounts.
inline std::vector<TokenMove> random_moves(const ShardPlan& plan) {
  std::vector<TokenMove> moves;
  for (int from = 0; from < plan.num_ranks(); ++from) {
    Tokens left = plan.num_tokens(from);
    for (int to = 0; to < plan.num_ranks() && left > 0; ++to) {
      if (to == from || *rc::gen::inRange(0, 3) > 0) continue;
      const Tokens tokens = *rc::gen::inRange<Tokens>(1, left + 1);
      moves.push_back({from, to, tokens});
      left -= tokens;
    }
  }
  return moves;
}

// Every document on a random ring of up to `max_ring` ranks, in runs of random length; documents of the same ring share
// it where they are neighbours. Some ranks hold nothing.
inline ShardPlan random_ring_plan(const std::vector<Tokens>& cu_seqlens, int num_ranks, int max_ring) {
  ShardPlan plan{.sharding = "random rings", .cu_seqlens = cu_seqlens, .exchange = KvExchange::rings};
  plan.ranges.resize(static_cast<std::size_t>(num_ranks));
  plan.ranks_per_node = *rc::gen::inRange(0, num_ranks + 1);
  std::vector<int> ring;
  for (std::size_t d = 0; d + 1 < cu_seqlens.size(); ++d) {
    if (ring.empty() || *rc::gen::inRange(0, 3) > 0) {
      std::vector<int> ranks(static_cast<std::size_t>(num_ranks));
      for (int r = 0; r < num_ranks; ++r) ranks[static_cast<std::size_t>(r)] = r;
      for (std::size_t i = ranks.size(); i > 1; --i)
        std::swap(ranks[i - 1], ranks[*rc::gen::inRange<std::size_t>(0, i)]);
      ranks.resize(static_cast<std::size_t>(*rc::gen::inRange(1, std::min(num_ranks, max_ring) + 1)));
      ring = ranks;
      if (ring.size() > 1) plan.rings.push_back({ring, {}});
    }
    if (ring.size() > 1) plan.rings.back().documents.push_back(d);
    const auto longest = *rc::gen::element<Tokens>(1, 5, 40);
    for (Tokens at = cu_seqlens[d]; at < cu_seqlens[d + 1];) {
      const Tokens end = std::min(cu_seqlens[d + 1], at + *rc::gen::inRange<Tokens>(1, longest + 1));
      auto& ranges = plan.ranges[static_cast<std::size_t>(*rc::gen::elementOf(ring))];
      if (!ranges.empty() && ranges.back().end == at)
        ranges.back().end = end;
      else
        ranges.push_back({at, end});
      at = end;
    }
  }
  std::erase_if(plan.rings, [](const Ring& r) { return r.documents.empty(); });
  plan.moves = random_moves(plan);
  RC_ASSERT(plan.violations().empty());
  return plan;
}

}  // namespace ballast::testing
