#include "ballast/sharding/predict_layer.h"

#include <algorithm>

#include "ballast/cost/ring_pass.h"
#include "ballast/sharding/sharder.h"

namespace ballast {

std::vector<Seconds> predict_rings(const ShardPlan& plan, const CostModel& cost) {
  std::vector<Seconds> sum(plan.ranges.size(), 0);
  for (const RingPass& pass : ring_passes(plan, cost)) {
    const std::vector<Seconds> ends = pass.run(std::vector<Seconds>(sum.size(), 0));
    for (std::size_t r = 0; r < sum.size(); ++r) sum[r] += ends[r];
  }
  return sum;
}

Seconds linear_seconds(Tokens tokens, const CostModel& cost) {
  return tokens > 0 ? cost.layer(Pass::forward, tokens) + cost.layer(Pass::backward, tokens) : 0;
}

std::vector<Seconds> predict_layer(const ShardPlan& plan, const CostModel& cost) {
  std::vector<Seconds> seconds = predict_attention(plan, cost);
  std::vector<Tokens> tokens = plan.tokens_per_rank();
  for (const TokenMove& move : plan.moves) {
    tokens[static_cast<std::size_t>(move.from)] -= move.tokens;
    tokens[static_cast<std::size_t>(move.to)] += move.tokens;
  }
  for (std::size_t r = 0; r < seconds.size(); ++r) seconds[r] += linear_seconds(tokens[r], cost);
  return seconds;
}

Seconds predict_slowest_layer(const ShardPlan& plan, const CostModel& cost) {
  const std::vector<Seconds> seconds = predict_layer(plan, cost);
  return *std::max_element(seconds.begin(), seconds.end());
}

Seconds uncut_attention(const std::vector<Tokens>& cu_seqlens, const CostModel& cost) {
  Seconds sum = 0;
  for (std::size_t d = 0; d + 1 < cu_seqlens.size(); ++d) {
    const Tokens length = cu_seqlens[d + 1] - cu_seqlens[d];
    if (length > 0) sum += cost.layer_attention(length);
  }
  return sum;
}

Seconds layer_even_share(const std::vector<Tokens>& cu_seqlens, int num_ranks, const CostModel& cost) {
  return uncut_attention(cu_seqlens, cost) / num_ranks +
         linear_seconds((cu_seqlens.back() + num_ranks - 1) / num_ranks, cost);
}

}  // namespace ballast
