// Even context parallelism: what Transformer Engine does (requirement Z7).
#include <numeric>

#include "ballast/sharding/ranges.h"
#include "ballast/sharding/sharder.h"

namespace ballast {

ShardPlan shard_ring(const std::vector<Tokens>& cu_seqlens, int num_ranks, const CostModel& cost) {
  ShardPlan plan = empty_plan("ring", cu_seqlens, num_ranks);
  plan.exchange = KvExchange::rings;
  plan.ranks_per_node = cost.cp_links().ranks_per_node;
  Ring all;
  all.ranks.resize(static_cast<std::size_t>(num_ranks));
  std::iota(all.ranks.begin(), all.ranks.end(), 0);
  std::size_t longer = 0;
  for (std::size_t d = 0; d + 1 < cu_seqlens.size(); ++d) {
    deal_to_ring(plan, cu_seqlens[d], cu_seqlens[d + 1], all.ranks, longer);
    longer = longer_after(longer, cu_seqlens[d + 1] - cu_seqlens[d], all.ranks.size());
    all.documents.push_back(d);
  }
  if (num_ranks > 1 && !all.documents.empty()) plan.rings.push_back(std::move(all));
  return plan;
}

}  // namespace ballast
