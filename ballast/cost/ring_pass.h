// One pass of one layer's attention under a plan with rings, its moves included, priced: what every cp rank does
// (ring_program.h), how long its parts take and which links its messages keep busy. Run from when each rank arrives, it
// says when each is done. The sharders' choice and the simulator's timeline both come from here.
//
// A message starts once both ends have posted it and its lanes are free, in the order in which that happens.
#pragma once

#include <vector>

#include "ballast/cost/cost_model.h"
#include "ballast/ir/ring_program.h"
#include "ballast/ir/shard_plan.h"

namespace ballast {

// What a rank is at; `ring`: place in the plan's rings, -1 of local documents and moves.
struct RingSpan {
  enum class Kind { attend, await_ring, move };
  int rank = 0;
  Kind kind = Kind::attend;
  AttentionQueue queue = AttentionQueue::local;  // of attend and await_ring
  int ring = -1;
  Seconds begin = 0;
  Seconds end = 0;
};

class RingPass {
 public:
  // `programs`: RingPlan::of_all_ranks(plan). Keeps no reference. REQUIRES: plan.violations() is empty and
  // plan.exchange is rings.
  RingPass(const ShardPlan& plan, const std::vector<RingPlan>& programs, const CostModel& cost, Pass pass);

  // When each rank is done; appends to `spans`, by rank and time, those of no length left out. `compute_factors`: how
  // many times as long a rank computes; empty: none is slow. REQUIRES: a time a rank.
  std::vector<Seconds> run(const std::vector<Seconds>& arrivals, std::vector<RingSpan>* spans = nullptr,
                           const std::vector<double>& compute_factors = {}) const;

  // What each rank computes.
  const std::vector<Seconds>& work() const { return work_; }
  // Sent by all ranks: inside nodes and across them.
  Bytes bytes_inside() const { return bytes_inside_; }
  Bytes bytes_across() const { return bytes_across_; }

 private:
  struct Step {
    enum class Kind { compute, post, await };
    Kind kind = Kind::compute;
    RingSpan::Kind span = RingSpan::Kind::attend;
    AttentionQueue queue = AttentionQueue::local;
    int ring = -1;
    Seconds seconds = 0;  // of compute
    int message = -1;     // of post and await
  };
  struct Message {
    int from = 0;
    int to = 0;
    MessageCost cost = {};
  };

  void add_message(int from, int to, Bytes bytes);
  void add_moves(const ShardPlan& plan, bool to_linear, Bytes bytes_per_token);
  void add_program(const ShardPlan& plan, const std::vector<RingPlan>& programs, const CostModel& cost, Pass pass);
  void add_compute(int rank, AttentionQueue queue, int ring, Seconds seconds);
  void begin_message(const Message& message, Seconds now, std::vector<Seconds>& free, Seconds& arrival) const;

  CpLinks links_;
  std::vector<Message> messages_;
  std::vector<std::vector<Step>> steps_;  // [rank]
  std::vector<Seconds> work_;
  Bytes bytes_inside_ = 0;
  Bytes bytes_across_ = 0;
};

// Forward and backward.
std::vector<RingPass> ring_passes(const ShardPlan& plan, const CostModel& cost);

}  // namespace ballast
