// Which tokens of one packed micro-batch each context parallel rank holds, and what that gives it to compute.
// Coordinates are packed: position 0 is the first token of the micro-batch. Everything a rank needs (positions,
// index maps, attention work) is derived from cu_seqlens and the ranges, so that it cannot contradict them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/base/token_range.h"

namespace ballast {

// One block of attention work: rows `queries` against rows `keys`, in packed coordinates, half open. Causal masking
// applies inside the document; keys begin at the document's first token and end with the block's last query, so the
// mask is aligned to the bottom right.
struct AttentionBlock {
  TokenRange queries;
  TokenRange keys;
  bool operator==(const AttentionBlock&) const = default;
};

// Query-key pairs a block attends: sum over its queries of the keys each may see. 64 bits: 4M tokens squared fits.
std::int64_t attention_pairs(const AttentionBlock& block);

struct ShardPlan {
  std::string sharding;                         // name of the strategy that made it
  std::vector<Tokens> cu_seqlens;               // document boundaries, first 0, never falling
  std::vector<std::vector<TokenRange>> ranges;  // [cp rank]: ascending, disjoint, not empty; this is the local order

  int num_ranks() const { return static_cast<int>(ranges.size()); }
  Tokens num_tokens() const { return cu_seqlens.empty() ? 0 : cu_seqlens.back(); }
  Tokens num_tokens(int rank) const;
  std::vector<Tokens> tokens_per_rank() const;

  // For every local token, in local order: its packed coordinate; its position inside its document.
  std::vector<Tokens> local_to_packed(int rank) const;
  std::vector<Tokens> local_positions(int rank) const;
  // For every packed token, its row in the concatenation of all ranks' local tokens (the inverse of the
  // concatenated local_to_packed): what restores packed order after an all-gather.
  std::vector<Tokens> packed_to_gathered() const;
  // Whether the two orders are the same, so that nothing needs to be restored.
  bool gathers_in_order() const;
  // Attention work of a rank in local order; ranges that cross document boundaries give a block a document.
  std::vector<AttentionBlock> attention_blocks(int rank) const;
  // The same, each given to visit(const AttentionBlock&).
  template <class Visit>
  void for_each_block(int rank, Visit&& visit) const {
    std::size_t document = 0;  // that holds the token at hand; ranges ascend, so it only moves on
    for (const TokenRange& range : ranges[static_cast<std::size_t>(rank)]) {
      for (Tokens at = range.begin; at < range.end;) {
        document = document_of(at, document);
        const Tokens end = std::min(range.end, cu_seqlens[document + 1]);
        visit(AttentionBlock{.queries = {at, end}, .keys = {cu_seqlens[document], end}});
        at = end;
      }
    }
  }

  // Every token on exactly one rank, ranges in order. `max_spread`: how far token counts of two ranks may lie apart
  // (negative: any).
  Violations violations(Tokens max_spread = -1) const;
  bool operator==(const ShardPlan&) const = default;

 private:
  // The document that holds token `at`, which is no earlier than document `from`; it mostly is near.
  std::size_t document_of(Tokens at, std::size_t from) const;
};

}  // namespace ballast
