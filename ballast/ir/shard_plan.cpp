#include "ballast/ir/shard_plan.h"

#include <algorithm>

namespace ballast {

std::int64_t attention_pairs(const AttentionBlock& block) {
  const std::int64_t queries = block.queries.size();
  const std::int64_t before = block.keys.size() - queries;  // keys that every query of the block sees
  return queries * before + queries * (queries + 1) / 2;
}

Tokens ShardPlan::num_tokens(int rank) const {
  Tokens sum = 0;
  for (const TokenRange& range : ranges[static_cast<std::size_t>(rank)]) sum += range.size();
  return sum;
}

std::vector<Tokens> ShardPlan::tokens_per_rank() const {
  std::vector<Tokens> counts;
  for (int rank = 0; rank < num_ranks(); ++rank) counts.push_back(num_tokens(rank));
  return counts;
}

std::vector<Tokens> ShardPlan::local_to_packed(int rank) const {
  std::vector<Tokens> packed;
  packed.reserve(static_cast<std::size_t>(num_tokens(rank)));
  for (const TokenRange& range : ranges[static_cast<std::size_t>(rank)]) {
    for (Tokens t = range.begin; t < range.end; ++t) packed.push_back(t);
  }
  return packed;
}

std::vector<Tokens> ShardPlan::local_positions(int rank) const {
  std::vector<Tokens> positions;
  positions.reserve(static_cast<std::size_t>(num_tokens(rank)));
  for (const AttentionBlock& block : attention_blocks(rank)) {
    for (Tokens t = block.queries.begin; t < block.queries.end; ++t) positions.push_back(t - block.keys.begin);
  }
  return positions;
}

std::vector<Tokens> ShardPlan::packed_to_gathered() const {
  std::vector<Tokens> gathered(static_cast<std::size_t>(num_tokens()));
  Tokens row = 0;
  for (const auto& rank_ranges : ranges) {
    for (const TokenRange& range : rank_ranges) {
      for (Tokens t = range.begin; t < range.end; ++t) gathered[static_cast<std::size_t>(t)] = row++;
    }
  }
  return gathered;
}

bool ShardPlan::gathers_in_order() const {
  Tokens at = 0;
  for (const auto& rank_ranges : ranges) {
    for (const TokenRange& range : rank_ranges) {
      if (range.begin != at) return false;
      at = range.end;
    }
  }
  return true;
}

std::size_t ShardPlan::document_of(Tokens at, std::size_t from) const {
  for (std::size_t near = from; near + 1 < cu_seqlens.size() && near < from + 4; ++near) {
    if (at < cu_seqlens[near + 1]) return near;
  }
  const auto above = std::upper_bound(cu_seqlens.begin() + static_cast<std::ptrdiff_t>(from), cu_seqlens.end(), at);
  return static_cast<std::size_t>(above - cu_seqlens.begin()) - 1;
}

std::vector<AttentionBlock> ShardPlan::attention_blocks(int rank) const {
  std::vector<AttentionBlock> blocks;
  for_each_block(rank, [&](const AttentionBlock& block) { blocks.push_back(block); });
  return blocks;
}

Violations ShardPlan::violations(Tokens max_spread) const {
  Violations found;
  if (cu_seqlens.empty() || cu_seqlens.front() != 0) {
    return {"cu_seqlens must start with 0"};
  }
  if (!std::is_sorted(cu_seqlens.begin(), cu_seqlens.end())) return {"cu_seqlens must never fall"};
  if (ranges.empty()) return {"a shard plan needs at least one rank"};

  std::vector<TokenRange> all;
  for (int rank = 0; rank < num_ranks(); ++rank) {
    Tokens last_end = 0;
    for (const TokenRange& range : ranges[static_cast<std::size_t>(rank)]) {
      if (range.empty()) found.push_back("rank " + std::to_string(rank) + " has an empty range");
      if (range.begin < last_end) found.push_back("rank " + std::to_string(rank) + ": ranges are not in order");
      last_end = range.end;
      all.push_back(range);
    }
  }
  std::sort(all.begin(), all.end(), [](const TokenRange& a, const TokenRange& b) { return a.begin < b.begin; });
  Tokens covered = 0;
  for (const TokenRange& range : all) {
    if (range.begin > covered) found.push_back("token " + std::to_string(covered) + " is on no rank");
    if (range.begin < covered) found.push_back("token " + std::to_string(range.begin) + " is on two ranks");
    covered = std::max(covered, range.end);
  }
  if (covered < num_tokens()) found.push_back("token " + std::to_string(covered) + " is on no rank");
  if (covered > num_tokens()) found.push_back("a range ends at " + std::to_string(covered) + ", past the last token");

  if (max_spread >= 0) {
    const std::vector<Tokens> counts = tokens_per_rank();
    const auto [low, high] = std::minmax_element(counts.begin(), counts.end());
    if (*high - *low > max_spread) {
      found.push_back("ranks hold from " + std::to_string(*low) + " to " + std::to_string(*high) +
                      " tokens, further apart than " + std::to_string(max_spread));
    }
  }
  return found;
}

}  // namespace ballast
