// What sharders share: to write down a plan, and to compare two.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/cost/cost_model.h"
#include "ballast/ir/shard_plan.h"

namespace ballast {

// The part of predict_attention that all ranks share: gather, scatter, and restoring packed order.
Seconds exchange_seconds(const ShardPlan& plan, const CostModel& cost);

struct PredictedPlan {
  ShardPlan plan;
  Seconds slowest = 0;  // rank, by predict_attention
};

// shard_adaptive's choice; one rank alone is not predicted.
PredictedPlan fastest_of_two(const std::vector<Tokens>& cu_seqlens, int num_ranks, const CostModel& cost);

// Appends to a rank's ranges, joining it to the last where they touch.
inline void append(std::vector<TokenRange>& ranges, TokenRange range) {
  if (range.empty()) return;
  if (!ranges.empty() && ranges.back().end == range.begin) {
    ranges.back().end = range.end;
  } else {
    ranges.push_back(range);
  }
}

// Throws UserError where num_ranks is not positive.
inline ShardPlan empty_plan(const char* name, const std::vector<Tokens>& cu_seqlens, int num_ranks) {
  if (num_ranks < 1) throw UserError("cp = " + std::to_string(num_ranks) + ": must be 1 or more");
  ShardPlan plan{.sharding = name, .cu_seqlens = cu_seqlens, .ranges = {}};
  plan.ranges.resize(static_cast<std::size_t>(num_ranks));
  return plan;
}

// Rank that holds chunk c of 2C: chunks i and 2C-1-i make a pair of one early and one late chunk, whose causal work is
// the same for every i.
inline std::size_t rank_of_chunk(std::size_t chunk, std::size_t num_ranks) {
  return std::min(chunk, 2 * num_ranks - 1 - chunk);
}

// The tokens [begin, end) of one document over all ranks: its largest multiple of 2C tokens in 2C chunks, the rest
// round robin from `next_rank`, which goes on from document to document (W8).
inline void deal_document(ShardPlan& plan, Tokens begin, Tokens end, std::size_t& next_rank) {
  const std::size_t ranks = plan.ranges.size();
  const Tokens chunk = (end - begin) / static_cast<Tokens>(2 * ranks);
  Tokens at = begin;
  for (std::size_t c = 0; chunk > 0 && c < 2 * ranks; ++c, at += chunk) {
    append(plan.ranges[rank_of_chunk(c, ranks)], {at, at + chunk});
  }
  for (; at < end; ++at, next_rank = (next_rank + 1) % ranks) append(plan.ranges[next_rank], {at, at + 1});
}

// Of chunk c of so many of a document, as even as can be: the tokens left over lengthen the chunks from `longer` on.
inline Tokens chunk_tokens(Tokens length, std::size_t chunks, std::size_t c, std::size_t longer) {
  const auto rest = static_cast<std::size_t>(length % static_cast<Tokens>(chunks));
  return length / static_cast<Tokens>(chunks) + ((c + chunks - longer % chunks) % chunks < rest ? 1 : 0);
}

// Where the next document's left-over tokens go on, so that no rank is always the one with more.
inline std::size_t longer_after(std::size_t longer, Tokens length, std::size_t ring_size) {
  return longer + static_cast<std::size_t>(length % static_cast<Tokens>(2 * ring_size));
}

// The tokens [begin, end) of one document over a ring: 2G chunks, the rank at place i holds chunks i and 2G-1-i
// (requirement Z3).
inline void deal_to_ring(ShardPlan& plan, Tokens begin, Tokens end, const std::vector<int>& ring, std::size_t longer) {
  Tokens at = begin;
  for (std::size_t c = 0; c < 2 * ring.size(); ++c) {
    const Tokens next = at + chunk_tokens(end - begin, 2 * ring.size(), c, longer);
    append(plan.ranges[static_cast<std::size_t>(ring[rank_of_chunk(c, ring.size())])], {at, next});
    at = next;
  }
}

// The most tokens of a document that deal_to_ring gives to one rank.
inline Tokens most_of_ring(Tokens length, int ranks) {
  const Tokens chunks = 2 * ranks;
  return 2 * (length / chunks) + std::min<Tokens>(2, length % chunks);
}

}  // namespace ballast
