#include "ballast/planner/imbalance.h"

#include <algorithm>

#include "ballast/packing/balance.h"

namespace ballast {

double micro_batch_imbalance(const PackedStep& step, const CostModel& cost) {
  return imbalance(predicted_work(step, cost));
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
          seconds += cost.layer(pass, shard.linear_tokens(rank));
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
