#include "ballast/ir/shard_plan.h"

#include <algorithm>
#include <functional>
#include <utility>

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

AttentionQueue ShardPlan::queue_of(const Ring& ring) const {
  for (const int rank : ring.ranks) {
    if (node_of(rank) != node_of(ring.ranks.front())) return AttentionQueue::inter_node;
  }
  return ring.ranks.size() > 1 ? AttentionQueue::intra_node : AttentionQueue::local;
}

Tokens ShardPlan::linear_tokens(int rank) const {
  Tokens tokens = num_tokens(rank);
  for (const TokenMove& move : moves) {
    if (move.from == rank) tokens -= move.tokens;
    if (move.to == rank) tokens += move.tokens;
  }
  return tokens;
}

namespace {

// Rows [first, first + count) of a rank's attention order, as ranges.
void append_rows(const std::vector<TokenRange>& ranges, Tokens first, Tokens count, std::vector<TokenRange>& into) {
  Tokens at = 0;
  for (const TokenRange& range : ranges) {
    const Tokens begin = std::max(first, at);
    const Tokens end = std::min(first + count, at + range.size());
    if (begin < end) into.push_back({range.begin + begin - at, range.begin + end - at});
    at += range.size();
  }
}

}  // namespace

std::vector<TokenRange> ShardPlan::linear_ranges(int rank) const {
  const auto of = [&](int r) -> const std::vector<TokenRange>& { return ranges[static_cast<std::size_t>(r)]; };
  if (moves.empty()) return of(rank);
  std::vector<TokenRange> found;
  Tokens kept = num_tokens(rank);
  for (const TokenMove& move : moves) kept -= move.from == rank ? move.tokens : 0;
  append_rows(of(rank), 0, kept, found);
  for (std::size_t m = 0; m < moves.size(); ++m) {
    if (moves[m].to != rank) continue;
    // What the sender hands over begins after what it keeps and its earlier moves.
    Tokens first = num_tokens(moves[m].from);
    for (const TokenMove& other : moves) first -= other.from == moves[m].from ? other.tokens : 0;
    for (std::size_t e = 0; e < m; ++e) first += moves[e].from == moves[m].from ? moves[e].tokens : 0;
    append_rows(of(moves[m].from), first, moves[m].tokens, found);
  }
  return found;
}

std::vector<AttentionBlock> ShardPlan::linear_blocks(int rank) const {
  std::vector<AttentionBlock> blocks;
  for_each_block(linear_ranges(rank), [&](const AttentionBlock& block) { blocks.push_back(block); });
  return blocks;
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

  if (attends_in_rings() && found.empty()) check_rings(found);
  if (!attends_in_rings() && !rings.empty()) found.push_back("rings are given, but keys are gathered");
  if (!attends_in_rings() && !moves.empty()) found.push_back("moves are given, but keys are gathered");
  check_moves(found);

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

void ShardPlan::check_rings(Violations& found) const {
  if (ranks_per_node < 0)
    found.push_back("ranks_per_node = " + std::to_string(ranks_per_node) + ": must not be negative");
  std::vector<int> ring_of(cu_seqlens.size() - 1, -1);
  for (std::size_t r = 0; r < rings.size(); ++r) {
    const std::string name = "ring " + std::to_string(r);
    std::vector<int> sorted = rings[r].ranks;
    std::sort(sorted.begin(), sorted.end());
    if (sorted.size() < 2) found.push_back(name + " needs two ranks or more");
    if (!sorted.empty() && (sorted.front() < 0 || sorted.back() >= num_ranks())) {
      found.push_back(name + " names a rank outside 0 to " + std::to_string(num_ranks() - 1));
    }
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) found.push_back(name + " names rank " + std::to_string(*twice) + " twice");
    if (!std::is_sorted(rings[r].documents.begin(), rings[r].documents.end(), std::less_equal<>())) {
      found.push_back(name + ": documents must ascend");
    }
    for (const std::size_t document : rings[r].documents) {
      if (document >= ring_of.size()) {
        found.push_back(name + " names document " + std::to_string(document) + ", which is not there");
      } else if (ring_of[document] >= 0) {
        found.push_back("document " + std::to_string(document) + " is in two rings");
      } else {
        ring_of[document] = static_cast<int>(r);
      }
    }
  }
  if (!found.empty()) return;
  std::vector<int> holder(ring_of.size(), -1);  // of documents in no ring
  for (int rank = 0; rank < num_ranks(); ++rank) {
    for_each_block(rank, [&](const AttentionBlock& block) {
      const std::size_t document = document_of(block.queries.begin);
      if (ring_of[document] >= 0) {
        const std::vector<int>& ranks = rings[static_cast<std::size_t>(ring_of[document])].ranks;
        if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) {
          found.push_back("rank " + std::to_string(rank) + " holds tokens of document " + std::to_string(document) +
                          " and is not in its ring");
        }
      } else if (holder[document] >= 0 && holder[document] != rank) {
        found.push_back("document " + std::to_string(document) + " lies on ranks " + std::to_string(holder[document]) +
                        " and " + std::to_string(rank) + " and is in no ring");
      } else {
        holder[document] = rank;
      }
    });
  }
}

void ShardPlan::check_moves(Violations& found) const {
  std::vector<Tokens> left = tokens_per_rank();
  const TokenMove* before = nullptr;
  for (const TokenMove& move : moves) {
    const std::string name = "move from rank " + std::to_string(move.from) + " to rank " + std::to_string(move.to);
    if (move.from < 0 || move.from >= num_ranks() || move.to < 0 || move.to >= num_ranks()) {
      found.push_back(name + ": there are ranks 0 to " + std::to_string(num_ranks() - 1));
      continue;
    }
    if (move.from == move.to || move.tokens < 1) found.push_back(name + ": must move a token to another rank");
    if (before != nullptr && std::pair(before->from, before->to) >= std::pair(move.from, move.to)) {
      found.push_back(name + ": moves must ascend by from, then to");
    }
    before = &move;
    left[static_cast<std::size_t>(move.from)] -= move.tokens;
    if (left[static_cast<std::size_t>(move.from)] < 0) found.push_back(name + ": the rank has fewer tokens");
  }
}

}  // namespace ballast
