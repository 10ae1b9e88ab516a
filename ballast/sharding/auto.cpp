// Requirement B2: whichever sharder is predicted fastest, micro-batch by micro-batch.
#include <algorithm>

#include "ballast/sharding/sharder.h"
#include "ballast/sharding/zeppelin.h"

namespace ballast {

namespace {

SharderTrial try_sharder(const std::string& name, const std::vector<Tokens>& cu_seqlens, int num_ranks,
                         const CostModel& cost, const PlacementOptions& options) {
  if (name == "zeppelin") {  // it has priced its plan
    ZeppelinPlan placed = shard_zeppelin(cu_seqlens, num_ranks, cost, options);
    const Seconds slowest = placed.estimated ? predict_slowest_layer(placed.plan, cost) : placed.slowest;
    return {name, std::move(placed.plan), slowest};
  }
  ShardPlan plan = make_shard_plan(name, cu_seqlens, num_ranks, cost, options);
  const Seconds slowest = num_ranks == 1 ? 0 : predict_slowest_layer(plan, cost);
  return {name, std::move(plan), slowest};
}

}  // namespace

std::vector<SharderTrial> try_all_sharders(const std::vector<Tokens>& cu_seqlens, int num_ranks, const CostModel& cost,
                                           const PlacementOptions& options) {
  std::vector<SharderTrial> trials;
  for (const std::string& name : sharding_names()) {
    // adaptive is one of the first two.
    if (name == "auto" || name == "adaptive") continue;
    trials.push_back(try_sharder(name, cu_seqlens, num_ranks, cost, options));
    if (num_ranks == 1) break;  // all the same: no profile entry of exchanges is needed
  }
  return trials;
}

const SharderTrial& fastest(const std::vector<SharderTrial>& trials) {
  return *std::min_element(trials.begin(), trials.end(),
                           [](const SharderTrial& a, const SharderTrial& b) { return a.slowest < b.slowest; });
}

ShardPlan shard_auto(const std::vector<Tokens>& cu_seqlens, int num_ranks, const CostModel& cost,
                     const PlacementOptions& options) {
  return fastest(try_all_sharders(cu_seqlens, num_ranks, cost, options)).plan;
}

}  // namespace ballast
