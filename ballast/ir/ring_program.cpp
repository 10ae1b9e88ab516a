#include "ballast/ir/ring_program.h"

#include <algorithm>
#include <span>

namespace ballast {

namespace {

using Kind = RingTask::Kind;

// A run of tokens of one document on a rank.
struct Piece {
  std::size_t document = 0;
  TokenRange tokens;  // packed
  Tokens row = 0;     // of the first, in the rank's attention order
};
using Pieces = std::vector<Piece>;  // of a rank, ascending

Pieces pieces_of(const ShardPlan& plan, int rank) {
  Pieces found;
  Tokens row = 0;
  std::size_t document = 0;
  plan.for_each_block(rank, [&](const AttentionBlock& block) {
    document = plan.document_of(block.queries.begin, document);
    found.push_back({document, block.queries, row});
    row += block.queries.size();
  });
  return found;
}

std::span<const Piece> of_document(const Pieces& pieces, std::size_t document) {
  const auto [first, last] = std::equal_range(pieces.begin(), pieces.end(), Piece{.document = document, .tokens = {}},
                                              [](const Piece& a, const Piece& b) { return a.document < b.document; });
  return {first, last};
}

// Queries of one document against keys of it. `first_key`: row of the first piece of keys.
void add_blocks(std::span<const Piece> queries, std::span<const Piece> keys, Tokens first_key,
                std::vector<RingBlock>& blocks) {
  for (const Piece& piece : queries) {
    Tokens seen = 0;  // keys before the piece: pieces ascend, and two pieces are the same or disjoint
    bool same = false;
    for (const Piece& key : keys) {
      if (key.tokens.end <= piece.tokens.begin) seen += key.tokens.size();
      same = same || key.tokens == piece.tokens;
    }
    const TokenRange rows{piece.row, piece.row + piece.tokens.size()};
    const bool joins = !blocks.empty() && !blocks.back().causal && seen > 0 && !same &&
                       blocks.back().queries.end == rows.begin &&
                       blocks.back().keys == TokenRange{first_key, first_key + seen};
    if (joins) {
      blocks.back().queries.end = rows.end;
    } else if (seen > 0) {
      blocks.push_back({rows, {first_key, first_key + seen}, false});
    }
    if (same) blocks.push_back({rows, {first_key + seen, first_key + seen + rows.size()}, true});
  }
}

void add_rows(std::vector<TokenRange>& rows, TokenRange range) {
  if (!rows.empty() && rows.back().end == range.begin) {
    rows.back().end = range.end;
  } else {
    rows.push_back(range);
  }
}

// Whole documents in `parts` parts of about the same number of query-key pairs, in order.
std::vector<std::vector<TokenRange>> share_out(const std::vector<TokenRange>& documents, int parts) {
  double all = 0;
  const auto pairs = [](const TokenRange& rows) {
    return static_cast<double>(rows.size()) * static_cast<double>(rows.size() + 1);
  };
  for (const TokenRange& rows : documents) all += pairs(rows);
  std::vector<std::vector<TokenRange>> found(static_cast<std::size_t>(parts));
  double before = 0;
  for (const TokenRange& rows : documents) {
    const double middle = before + pairs(rows) / 2;
    const auto part = static_cast<int>(middle / all * parts);
    found[static_cast<std::size_t>(std::clamp(part, 0, parts - 1))].push_back(rows);
    before += pairs(rows);
  }
  return found;
}

}  // namespace

int RingPlan::Membership::at(int places_before) const {
  const int size = static_cast<int>(ranks.size());
  return ranks[static_cast<std::size_t>(((place - places_before) % size + size) % size)];
}

Tokens RingPlan::Membership::tokens_of_round(int round) const {
  const int size = static_cast<int>(ranks.size());
  return tokens[static_cast<std::size_t>(((place - round) % size + size) % size)];
}

const RingPlan::Membership& RingPlan::membership(int ring) const {
  const auto found = std::find_if(memberships_.begin(), memberships_.end(),
                                  [&](const Membership& membership) { return membership.ring == ring; });
  BALLAST_ASSERT(found != memberships_.end(), "a ring that this rank is in");
  return *found;
}

// Pieces by rank, found when first asked for.
class RingPlan::PieceIndex {
 public:
  explicit PieceIndex(const ShardPlan& plan) : plan_(plan), pieces_(plan.ranges.size()), known_(plan.ranges.size()) {}
  const Pieces& of_rank(int rank) {
    const auto r = static_cast<std::size_t>(rank);
    if (!known_[r]) pieces_[r] = pieces_of(plan_, rank);
    known_[r] = true;
    return pieces_[r];
  }

 private:
  const ShardPlan& plan_;
  std::vector<Pieces> pieces_;
  std::vector<bool> known_;
};

RingPlan::RingPlan(const ShardPlan& plan, int rank) {
  PieceIndex pieces(plan);
  build(plan, rank, pieces);
}

std::vector<RingPlan> RingPlan::of_all_ranks(const ShardPlan& plan) {
  PieceIndex pieces(plan);
  std::vector<RingPlan> found;
  for (int rank = 0; rank < plan.num_ranks(); ++rank) {
    found.push_back(RingPlan());
    found.back().build(plan, rank, pieces);
  }
  return found;
}

void RingPlan::build(const ShardPlan& plan, int rank, PieceIndex& pieces) {
  std::vector<bool> in_ring(plan.cu_seqlens.size() - 1, false);
  for (std::size_t r = 0; r < plan.rings.size(); ++r) {
    const Ring& ring = plan.rings[r];
    const auto place = std::find(ring.ranks.begin(), ring.ranks.end(), rank);
    if (place == ring.ranks.end()) continue;
    Membership membership{.ring = static_cast<int>(r),
                          .queue = plan.queue_of(ring),
                          .place = static_cast<int>(place - ring.ranks.begin()),
                          .ranks = ring.ranks,
                          .rounds = {}};
    for (const int other : ring.ranks) {
      Tokens tokens = 0;
      for (const std::size_t document : ring.documents) {
        for (const Piece& piece : of_document(pieces.of_rank(other), document)) tokens += piece.tokens.size();
      }
      membership.tokens.push_back(tokens);
    }
    for (const std::size_t document : ring.documents) {
      in_ring[document] = true;
      for (const Piece& piece : of_document(pieces.of_rank(rank), document)) {
        add_rows(membership.own_rows, {piece.row, piece.row + piece.tokens.size()});
      }
    }
    for (int round = 0; round < membership.size(); ++round) {
      std::vector<RingBlock>& blocks = membership.rounds.emplace_back();
      Tokens first_key = 0;
      for (const std::size_t document : ring.documents) {
        const std::span<const Piece> keys = of_document(pieces.of_rank(membership.at(round)), document);
        add_blocks(of_document(pieces.of_rank(rank), document), keys, first_key, blocks);
        for (const Piece& piece : keys) first_key += piece.tokens.size();
      }
    }
    memberships_.push_back(std::move(membership));
  }
  std::stable_sort(memberships_.begin(), memberships_.end(), [](const Membership& a, const Membership& b) {
    return static_cast<int>(a.queue) > static_cast<int>(b.queue);
  });

  int rounds = 1;
  for (const Membership& membership : memberships_) rounds = std::max(rounds, membership.size());
  std::vector<TokenRange> local;
  std::size_t last = plan.cu_seqlens.size();
  for (const Piece& piece : pieces.of_rank(rank)) {
    if (in_ring[piece.document]) continue;
    if (piece.document != last) local.push_back({piece.row, piece.row});
    local.back().end += piece.tokens.size();
    last = piece.document;
  }
  local_parts_ = share_out(local, rounds);

  for (const Membership& membership : memberships_) {
    forward_.push_back({Kind::post_keys, membership.ring, 1});
    backward_.push_back({Kind::post_keys, membership.ring, 1});
  }
  for (int round = 0; round < rounds; ++round) {
    for (const Membership& membership : memberships_) {
      if (round >= membership.size()) continue;
      const int ring = membership.ring;
      for (std::vector<RingTask>* tasks : {&forward_, &backward_}) {
        if (round > 0) {
          tasks->push_back({Kind::await_keys, ring, round});
          if (round + 1 < membership.size()) tasks->push_back({Kind::post_keys, ring, round + 1});
        }
        tasks->push_back({Kind::attend, ring, round});
      }
      if (round > 1) backward_.push_back({Kind::await_gradients, ring, round});
      if (round > 0) backward_.push_back({Kind::post_gradients, ring, round});
    }
    if (local_parts_[static_cast<std::size_t>(round)].empty()) continue;
    forward_.push_back({Kind::attend_local, -1, round});
    backward_.push_back({Kind::attend_local, -1, round});
  }
  for (const Membership& membership : memberships_) {
    backward_.push_back({Kind::await_gradients, membership.ring, membership.size()});
  }
}

}  // namespace ballast
