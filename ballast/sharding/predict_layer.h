// What plans take and what no plan is faster than, for the sharders to compare.
#pragma once

#include <vector>

#include "ballast/cost/cost_model.h"
#include "ballast/ir/shard_plan.h"

namespace ballast {

// Attention of one layer, forward and backward, by rank, when all begin at once.
std::vector<Seconds> predict_rings(const ShardPlan& plan, const CostModel& cost);

// One layer's attention, both passes, of all documents uncut.
Seconds uncut_attention(const std::vector<Tokens>& cu_seqlens, const CostModel& cost);

// One layer's linear modules, both passes, of a rank that has so many tokens.
Seconds linear_seconds(Tokens tokens, const CostModel& cost);

}  // namespace ballast
