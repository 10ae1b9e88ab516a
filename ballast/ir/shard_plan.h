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

// How keys and values reach the ranks that hold a document's queries.
enum class KvExchange {
  gather,  // every rank gets those of all documents before it attends (L4)
  rings,   // those of a document go round the ranks that hold it, while these attend what they have (Z3, Z4)
};

// Documents that the same ranks hold, whose keys and values travel together.
struct Ring {
  std::vector<int> ranks;              // of the cp axis, two or more, each once; keys go from each to the next
  std::vector<std::size_t> documents;  // places in the micro-batch, ascending
  bool operator==(const Ring&) const = default;
};

// Tokens that one rank hands to another for the modules that are linear in tokens (Z6): the last it still has, in
// attention order; the receiver appends them to its own, in the order of the moves.
struct TokenMove {
  int from = 0;
  int to = 0;
  Tokens tokens = 0;
  bool operator==(const TokenMove&) const = default;
};

// Of a document on one rank, on ranks of one node, or across nodes; run in the reverse order (Z4).
enum class AttentionQueue { local, intra_node, inter_node };

struct ShardPlan {
  std::string sharding;                              // name of the strategy that made it
  std::vector<Tokens> cu_seqlens;                    // document boundaries, first 0, never falling
  std::vector<std::vector<TokenRange>> ranges = {};  // [cp rank]: ascending, disjoint, not empty; the local order
  KvExchange exchange = KvExchange::gather;
  std::vector<Ring> rings = {};       // of exchange `rings`; a document in none of them is whole on one rank
  int ranks_per_node = 0;             // consecutive cp ranks; 0: all share a node
  std::vector<TokenMove> moves = {};  // ascending by from, then to; empty: linear modules run in attention order

  int num_ranks() const { return static_cast<int>(ranges.size()); }
  Tokens num_tokens() const { return cu_seqlens.empty() ? 0 : cu_seqlens.back(); }
  Tokens num_tokens(int rank) const;
  std::vector<Tokens> tokens_per_rank() const;

  // For every local token, in attention order: its packed coordinate; its position inside its document.
  std::vector<Tokens> local_to_packed(int rank) const;
  std::vector<Tokens> local_positions(int rank) const;
  // For every packed token, its row in the concatenation of all ranks' local tokens (the inverse of the
  // concatenated local_to_packed): what restores packed order after an all-gather.
  std::vector<Tokens> packed_to_gathered() const;
  // Whether the two orders are the same, so that nothing needs to be restored.
  bool gathers_in_order() const;
  int node_of(int rank) const { return ranks_per_node > 0 ? rank / ranks_per_node : 0; }
  AttentionQueue queue_of(const Ring& ring) const;
  bool attends_in_rings() const { return exchange == KvExchange::rings; }
  // Tokens of a rank in linear modules, and where they lie in the packed micro-batch: those it keeps, then those that
  // it is given.
  Tokens linear_tokens(int rank) const;
  std::vector<TokenRange> linear_ranges(int rank) const;
  // Of the tokens in linear order, by document: queries and the document's tokens up to the last of them.
  std::vector<AttentionBlock> linear_blocks(int rank) const;

  // Attention work of a rank in local order; ranges that cross document boundaries give a block a document.
  std::vector<AttentionBlock> attention_blocks(int rank) const;
  // The same, each given to visit(const AttentionBlock&).
  template <class Visit>
  void for_each_block(int rank, Visit&& visit) const {
    for_each_block(ranges[static_cast<std::size_t>(rank)], visit);
  }
  // Of tokens that lie so; they need not ascend.
  template <class Visit>
  void for_each_block(const std::vector<TokenRange>& of, Visit&& visit) const {
    std::size_t document = 0;  // that holds the token at hand; it mostly moves on
    for (const TokenRange& range : of) {
      if (range.begin < cu_seqlens[document]) document = 0;
      for (Tokens at = range.begin; at < range.end;) {
        document = document_of(at, document);
        const Tokens end = std::min(range.end, cu_seqlens[document + 1]);
        visit(AttentionBlock{.queries = {at, end}, .keys = {cu_seqlens[document], end}});
        at = end;
      }
    }
  }

  // Every token on exactly one rank, ranges in order, rings of those ranks that hold the document and of no other,
  // moves of tokens that are there. `max_spread`: how far token counts of two ranks may lie apart (negative: any).
  Violations violations(Tokens max_spread = -1) const;
  bool operator==(const ShardPlan&) const = default;

  // The document that holds token `at`, which is no earlier than document `from`; it mostly is near.
  std::size_t document_of(Tokens at, std::size_t from = 0) const;

 private:
  void check_rings(Violations& found) const;
  void check_moves(Violations& found) const;
};

}  // namespace ballast
