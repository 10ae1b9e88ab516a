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

}  // namespace ballast::testing
