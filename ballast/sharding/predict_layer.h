// What a plan with rings takes, for the sharders to compare.
#pragma once

#include <vector>

#include "ballast/cost/cost_model.h"
#include "ballast/ir/shard_plan.h"

namespace ballast {

// Attention of one layer, forward and backward, by rank, when all begin at once.
std::vector<Seconds> predict_rings(const ShardPlan& plan, const CostModel& cost);

// Of one token in one layer's linear modules, both passes, where a rank has so many.
Seconds linear_seconds(Tokens tokens, const CostModel& cost);

}  // namespace ballast
