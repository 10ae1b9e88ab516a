#include "ballast/planner/imbalance.h"

#include <algorithm>

namespace ballast {

double micro_batch_imbalance(const PackedStep& step, const CostModel& cost) {
  Seconds slowest = 0;
  Seconds total = 0;
  for (const MicroBatch& micro_batch : step.micro_batches) {
    const Seconds seconds = cost.micro_batch(micro_batch);
    slowest = std::max(slowest, seconds);
    total += seconds;
  }
  return total > 0 ? slowest * static_cast<double>(step.micro_batches.size()) / total : 1;
}

double cp_imbalance(const StepPlan& plan, const CostModel& cost) {
  Seconds slowest_sum = 0;
  Seconds total = 0;
  for (const auto& pipeline : plan.shard_plans) {
    for (const ShardPlan& shard : pipeline) {
      Seconds slowest = 0;
      for (int rank = 0; rank < shard.num_ranks(); ++rank) {
        Seconds seconds = 0;
        for (const Pass pass : {Pass::forward, Pass::backward}) {
          seconds += cost.layer(pass, shard.num_tokens(rank));
          for (const AttentionBlock& block : shard.attention_blocks(rank)) seconds += cost.attention(pass, block);
        }
        slowest = std::max(slowest, seconds);
        total += seconds;
      }
      slowest_sum += slowest * shard.num_ranks();
    }
  }
  return total > 0 ? slowest_sum / total : 1;
}

}  // namespace ballast
