// Sharders decide which context parallel rank holds which tokens of a micro-batch. A sharder is a pure function to a
// ShardPlan; any document length (0 included) and any degree are right.
#pragma once

#include <string>
#include <vector>

#include "ballast/cost/cost_model.h"
#include "ballast/ir/packed_step.h"
#include "ballast/ir/shard_plan.h"

namespace ballast {

// W7: the packed sequence in 2C chunks, rank i takes chunks i and 2C-1-i.
ShardPlan shard_per_sequence(const std::vector<Tokens>& cu_seqlens, int num_ranks);

// W8: each document's largest multiple of 2C tokens in 2C chunks, the left-over tokens of all documents round robin.
ShardPlan shard_per_document(const std::vector<Tokens>& cu_seqlens, int num_ranks);

// Predicted time of one layer's attention, forward and backward, with the gather of keys and values and,
// where their order is not packed order, its restoring: by rank.
std::vector<Seconds> predict_attention(const ShardPlan& plan, const CostModel& cost);

// The slowest of them.
Seconds predict_slowest(const ShardPlan& plan, const CostModel& cost);

// W9: whichever of the two has the faster slowest rank by predict_attention; on a tie per_sequence, which has fewer
// blocks. `sharding` of the result names the choice.
ShardPlan shard_adaptive(const std::vector<Tokens>& cu_seqlens, int num_ranks, const CostModel& cost);

// Documents of `threshold` tokens and more as shard_per_document; shorter ones whole, longest first, each on the rank
// that computes least attention if it has room for its tokens, else on the one with most room; what fits nowhere is cut
// over what room is left. Token counts differ by at most one.
ShardPlan shard_whole_below(const std::vector<Tokens>& cu_seqlens, int num_ranks, Tokens threshold,
                            const CostModel& cost);

// W10: the fastest by predict_attention of adaptive's choice and shard_whole_below at thresholds of 1, 1/2, 1/4 and 1/8
// of a rank's tokens, which are tried where adaptive's is over 0.1% above all documents uncut and evenly shared.
// `sharding` of the result names the choice.
ShardPlan shard_hybrid(const std::vector<Tokens>& cu_seqlens, int num_ranks, const CostModel& cost);

// Z7, as Transformer Engine does: every document in a ring over all ranks. Token counts differ by at most one a
// document.
ShardPlan shard_ring(const std::vector<Tokens>& cu_seqlens, int num_ranks, const CostModel& cost);

// What placing documents on ranks may use.
struct PlacementOptions {
  Tokens rank_tokens = 0;  // most that a rank may hold in attention; 0: twice an even share
  bool moves = true;       // tokens may move for the linear modules (Z6)
};

// Z7: documents of more work than a rank's share, or longer than a rank holds, in a ring over all ranks; the others
// whole, longest first, each on the rank of least work that has room. Work is attention and linear modules. What fits
// nowhere goes to the ring.
ShardPlan shard_hybrid_dp(const std::vector<Tokens>& cu_seqlens, int num_ranks, const CostModel& cost,
                          const PlacementOptions& options = {});

// Gives the plan the moves that even out tokens at least cost (Z6), where that makes the slowest rank's layer faster
// by 3% or more. Returns predict_slowest_layer of the plan as it then is.
Seconds add_moves_that_pay(ShardPlan& plan, const CostModel& cost);
// The same, whether it pays or not.
void add_moves(ShardPlan& plan);

// Predicted time of one layer, forward and backward, by rank: attention as above or, of a plan with rings, as its ranks
// wait for each other; and the modules linear in tokens, in linear order.
std::vector<Seconds> predict_layer(const ShardPlan& plan, const CostModel& cost);
Seconds predict_slowest_layer(const ShardPlan& plan, const CostModel& cost);

// All documents' attention uncut and all tokens' linear modules, shared out evenly: what a plan is measured against. No
// bound: where a kernel is faster on pieces than on the whole, a plan may be a few percent below it.
Seconds layer_even_share(const std::vector<Tokens>& cu_seqlens, int num_ranks, const CostModel& cost);

// B2: every sharder's plan, and the one whose slowest rank's layer is predicted fastest; of equals the first.
// REQUIRES of `fastest`: there is a trial.
struct SharderTrial {
  std::string name;  // as make_shard_plan takes it
  ShardPlan plan;
  Seconds slowest = 0;
};
std::vector<SharderTrial> try_all_sharders(const std::vector<Tokens>& cu_seqlens, int num_ranks, const CostModel& cost,
                                           const PlacementOptions& options = {});
const SharderTrial& fastest(const std::vector<SharderTrial>& trials);
ShardPlan shard_auto(const std::vector<Tokens>& cu_seqlens, int num_ranks, const CostModel& cost,
                     const PlacementOptions& options = {});

// By name: per-sequence, per-document, adaptive, hybrid, ring, hybrid-dp, zeppelin, auto. Throws UserError for another,
// with the nearest.
ShardPlan make_shard_plan(const std::string& sharding, const std::vector<Tokens>& cu_seqlens, int num_ranks,
                          const CostModel& cost, const PlacementOptions& options = {});
std::vector<std::string> sharding_names();
// Those whose keys are gathered.
std::vector<std::string> gathering_sharding_names();

}  // namespace ballast
