// What one rank does in one layer's attention under a plan with rings (requirement Z4): the order in which the engine
// runs it and the cost model prices it, derived from the plan alone, so that the two cannot differ.
//
// Rings are run across nodes first, then inside nodes; local documents fill the gaps. Of a ring of G ranks, round r
// attends the keys of the rank r places before. Keys of the next round are on their way while a round is attended, two
// rounds' keys held at most. Backward, the keys go round again; the gradients of a rank's keys follow them from round 1
// on, each rank adding its part, and end where they belong.
#pragma once

#include <cstddef>
#include <vector>

#include "ballast/ir/shard_plan.h"

namespace ballast {

struct RingTask {
  enum class Kind {
    post_keys,        // hand on the keys of round - 1, take those of `round`; neither blocks
    await_keys,       // of `round`
    attend,           // queries against the keys of `round`
    await_gradients,  // of the keys of `round`, what ranks before this one found; round G: of this rank's own keys
    post_gradients,   // hand them on, with this rank's part; take those of `round` + 1
    attend_local,     // part `round` of the local documents
  };
  Kind kind = Kind::attend;
  int ring = -1;  // place in plan.rings
  int round = 0;
  bool operator==(const RingTask&) const = default;
};

// Queries of a rank against keys of one rank of the ring.
struct RingBlock {
  TokenRange queries;   // rows in the rank's attention order
  TokenRange keys;      // rows among the key rank's tokens of the ring's documents, in its attention order
  bool causal = false;  // the same tokens on both sides, query i sees keys up to i; else all see all
};

// The pieces of the ring's documents on its ranks, and the work of every round.
class RingPlan {
 public:
  // REQUIRES: plan.violations() is empty and plan.exchange is rings. Keeps no reference.
  RingPlan(const ShardPlan& plan, int rank);
  static std::vector<RingPlan> of_all_ranks(const ShardPlan& plan);

  const std::vector<RingTask>& forward() const { return forward_; }
  const std::vector<RingTask>& backward() const { return backward_; }

  struct Membership {
    int ring = 0;
    AttentionQueue queue = AttentionQueue::intra_node;
    int place = 0;                               // of this rank in the ring
    std::vector<int> ranks = {};                 // in ring order
    std::vector<Tokens> tokens = {};             // of the ring's documents on each, in ring order
    std::vector<TokenRange> own_rows = {};       // of the ring's documents in this rank's attention order
    std::vector<std::vector<RingBlock>> rounds;  // [round]
    int size() const { return static_cast<int>(ranks.size()); }
    int at(int places_before) const;  // the rank so many places before this one
    int next() const { return at(-1); }
    int previous() const { return at(1); }
    Tokens tokens_of_round(int round) const;  // keys attended in it
  };
  // In the order of their queues: across nodes first.
  const std::vector<Membership>& memberships() const { return memberships_; }
  const Membership& membership(int ring) const;
  // Of whole documents on this rank; [part].
  const std::vector<std::vector<TokenRange>>& local_parts() const { return local_parts_; }

 private:
  class PieceIndex;
  RingPlan() = default;
  void build(const ShardPlan& plan, int rank, PieceIndex& pieces);

  std::vector<Membership> memberships_;
  std::vector<std::vector<TokenRange>> local_parts_;  // rows of a document each
  std::vector<RingTask> forward_;
  std::vector<RingTask> backward_;
};

}  // namespace ballast
