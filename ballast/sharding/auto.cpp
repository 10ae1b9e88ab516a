// Requirement B2: whichever sharder is predicted fastest, micro-batch by micro-batch.
#include <algorithm>

#include "ballast/sharding/sharder.h"

namespace ballast {

std::vector<SharderTrial> try_all_sharders(const std::vector<Tokens>& cu_seqlens, int num_ranks, const CostModel& cost,
                                           const PlacementOptions& options) {
  std::vector<SharderTrial> trials;
  for (const std::string& name : sharding_names()) {
    // adaptive is one of the first two.
    if (name == "auto" || name == "adaptive") continue;
    ShardPlan plan = make_shard_plan(name, cu_seqlens, num_ranks, cost, options);
    const Seconds slowest = num_ranks == 1 ? 0 : predict_slowest_layer(plan, cost);
    trials.push_back({name, std::move(plan), slowest});
    if (num_ranks == 1) break;  // all the same: no profile entry of exchanges is needed
  }
  return trials;
}

ShardPlan shard_auto(const std::vector<Tokens>& cu_seqlens, int num_ranks, const CostModel& cost,
                     const PlacementOptions& options) {
  std::vector<SharderTrial> trials = try_all_sharders(cu_seqlens, num_ranks, cost, options);
  const auto best = std::min_element(
      trials.begin(), trials.end(), [](const SharderTrial& a, const SharderTrial& b) { return a.slowest < b.slowest; });
  return std::move(best->plan);
}

}  // namespace ballast
