// Imbalance of a plan: slowest x N / total of predicted latency, WLB-LLM's Table 2 measure. 1 is perfect.
#pragma once

#include "ballast/cost/cost_model.h"
#include "ballast/ir/packed_step.h"
#include "ballast/ir/step_plan.h"

namespace ballast {

// Over the N micro-batches of a step, whole model. 1 where there is no work.
double micro_batch_imbalance(const PackedStep& step, const CostModel& cost);

// Over the ranks of a cp group, one layer forward and backward, its linear part included. The ranks of a group meet in
// every micro-batch, so it is the sum over micro-batches of the slowest rank x C, over the sum of all ranks' time.
double cp_imbalance(const StepPlan& plan, const CostModel& cost);

}  // namespace ballast
