// Hybrid data parallelism: long documents by context parallelism over all ranks, short ones whole (requirement Z7).
#include <numeric>

#include "ballast/sharding/placement.h"
#include "ballast/sharding/predict_layer.h"
#include "ballast/sharding/sharder.h"

namespace ballast {

ShardPlan shard_hybrid_dp(const std::vector<Tokens>& cu_seqlens, int num_ranks, const CostModel& cost,
                          const PlacementOptions& options) {
  if (num_ranks < 1) throw UserError("cp = " + std::to_string(num_ranks) + ": must be 1 or more");
  const Tokens capacity = rank_capacity(options.rank_tokens, cu_seqlens, num_ranks);
  const Tokens share = std::max<Tokens>(1, cu_seqlens.back() / num_ranks);
  const Seconds a_token = linear_seconds(share, cost) / static_cast<double>(share);
  DocumentWork attention(cost);
  const std::vector<std::size_t> documents = longest_first(cu_seqlens);
  const auto length_of = [&](std::size_t d) { return cu_seqlens[d + 1] - cu_seqlens[d]; };
  const auto work = [&](Tokens length) { return attention(length) + a_token * static_cast<double>(length); };
  Seconds all = 0;
  for (const std::size_t d : documents) all += work(length_of(d));

  PlacedDocuments placed(cu_seqlens.size() - 1);
  RankLoads loads(static_cast<std::size_t>(num_ranks), capacity);
  std::vector<int> everyone(static_cast<std::size_t>(num_ranks));
  std::iota(everyone.begin(), everyone.end(), 0);
  for (const std::size_t d : documents) {
    const Tokens length = length_of(d);
    const std::size_t rank = loads.best_for(length);
    if (num_ranks == 1 || (work(length) <= all / num_ranks && loads.room(rank) >= length)) {
      placed.put_whole(d, rank);
      loads.put(rank, length, work(length));
      continue;
    }
    const std::vector<Tokens> tokens = placed.put_in_ring(d, length, everyone);
    for (std::size_t r = 0; r < everyone.size(); ++r) loads.put(r, tokens[r], work(length) / num_ranks);
  }
  return placed.plan("hybrid_dp", cu_seqlens, num_ranks, cost.cp_links().ranks_per_node);
}

}  // namespace ballast
