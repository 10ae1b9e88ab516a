#include "ballast/sharding/sharder.h"

#include <algorithm>

#include "ballast/base/error.h"
#include "ballast/sharding/predict_layer.h"
#include "ballast/sharding/ranges.h"
#include "ballast/sharding/zeppelin.h"

namespace ballast {

ShardPlan shard_per_sequence(const std::vector<Tokens>& cu_seqlens, int num_ranks) {
  ShardPlan plan = empty_plan("per_sequence", cu_seqlens, num_ranks);
  const auto ranks = static_cast<std::size_t>(num_ranks);
  const Tokens chunk = plan.num_tokens() / (2 * num_ranks);
  const Tokens rest = plan.num_tokens() % (2 * num_ranks);  // chunks longer by one: first one a rank, then a second
  const auto longer = [&](std::size_t c) {
    return c < ranks ? static_cast<Tokens>(c) < rest : static_cast<Tokens>(ranks + rank_of_chunk(c, ranks)) < rest;
  };
  Tokens at = 0;
  for (std::size_t c = 0; c < 2 * ranks; ++c) {
    const Tokens end = at + chunk + (longer(c) ? 1 : 0);
    append(plan.ranges[rank_of_chunk(c, ranks)], {at, end});
    at = end;
  }
  return plan;
}

ShardPlan shard_per_document(const std::vector<Tokens>& cu_seqlens, int num_ranks) {
  ShardPlan plan = empty_plan("per_document", cu_seqlens, num_ranks);
  for (std::vector<TokenRange>& ranges : plan.ranges) ranges.reserve(2 * cu_seqlens.size());
  std::size_t next_rank = 0;
  for (std::size_t d = 0; d + 1 < cu_seqlens.size(); ++d) {
    deal_document(plan, cu_seqlens[d], cu_seqlens[d + 1], next_rank);
  }
  return plan;
}

Seconds exchange_seconds(const ShardPlan& plan, const CostModel& cost) {
  const Bytes gathered = plan.num_tokens() * cost.kv_bytes_per_token();
  Seconds exchange = cost.collective(Collective::all_gather, Axis::cp, plan.num_ranks(), gathered) +
                     cost.collective(Collective::reduce_scatter, Axis::cp, plan.num_ranks(), gathered);
  if (!plan.gathers_in_order()) {
    exchange += cost.reorder(Pass::forward, plan.num_tokens()) + cost.reorder(Pass::backward, plan.num_tokens());
  }
  return exchange;
}

std::vector<Seconds> predict_attention(const ShardPlan& plan, const CostModel& cost) {
  if (plan.attends_in_rings()) return predict_rings(plan, cost);
  const Seconds exchange = exchange_seconds(plan, cost);
  std::vector<Seconds> seconds;
  seconds.reserve(plan.ranges.size());
  for (int rank = 0; rank < plan.num_ranks(); ++rank) {
    Seconds sum = exchange;
    plan.for_each_block(rank, [&](const AttentionBlock& block) { sum += cost.layer_attention(block); });
    seconds.push_back(sum);
  }
  return seconds;
}

Seconds predict_slowest(const ShardPlan& plan, const CostModel& cost) {
  const std::vector<Seconds> seconds = predict_attention(plan, cost);
  return *std::max_element(seconds.begin(), seconds.end());
}

PredictedPlan fastest_of_two(const std::vector<Tokens>& cu_seqlens, int num_ranks, const CostModel& cost) {
  ShardPlan per_sequence = shard_per_sequence(cu_seqlens, num_ranks);
  if (num_ranks == 1) return {std::move(per_sequence), 0};  // the same plans: no profile entry is needed
  ShardPlan per_document = shard_per_document(cu_seqlens, num_ranks);
  const Seconds of_sequence = predict_slowest(per_sequence, cost);
  const Seconds of_document = predict_slowest(per_document, cost);
  if (of_document < of_sequence) return {std::move(per_document), of_document};
  return {std::move(per_sequence), of_sequence};
}

ShardPlan shard_adaptive(const std::vector<Tokens>& cu_seqlens, int num_ranks, const CostModel& cost) {
  return fastest_of_two(cu_seqlens, num_ranks, cost).plan;
}

std::vector<std::string> gathering_sharding_names() { return {"per-sequence", "per-document", "adaptive", "hybrid"}; }

std::vector<std::string> sharding_names() {
  return {"per-sequence", "per-document", "adaptive", "hybrid", "ring", "hybrid-dp", "zeppelin", "auto"};
}

ShardPlan make_shard_plan(const std::string& sharding, const std::vector<Tokens>& cu_seqlens, int num_ranks,
                          const CostModel& cost, const PlacementOptions& options) {
  if (sharding == "per-sequence") return shard_per_sequence(cu_seqlens, num_ranks);
  if (sharding == "per-document") return shard_per_document(cu_seqlens, num_ranks);
  if (sharding == "adaptive") return shard_adaptive(cu_seqlens, num_ranks, cost);
  if (sharding == "hybrid") return shard_hybrid(cu_seqlens, num_ranks, cost);
  if (sharding == "ring") return shard_ring(cu_seqlens, num_ranks, cost);
  if (sharding == "hybrid-dp") return shard_hybrid_dp(cu_seqlens, num_ranks, cost, options);
  if (sharding == "zeppelin") return shard_zeppelin(cu_seqlens, num_ranks, cost, options).plan;
  if (sharding == "auto") return shard_auto(cu_seqlens, num_ranks, cost, options);
  const std::string near = nearest_name(sharding, sharding_names());
  throw UserError("sharding = \"" + sharding + "\": must be one of " + join(sharding_names()) +
                  (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

}  // namespace ballast
