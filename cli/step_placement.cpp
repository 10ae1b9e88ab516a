#include "cli/step_placement.h"

#include <algorithm>

#include "cli/placement.h"

namespace ballast::cli {

namespace {

using nlohmann::ordered_json;

constexpr Tokens kLeastLongest = 64;  // that zones are looked for to

bool in_rings(const ShardPlan& plan) { return plan.exchange == KvExchange::rings && plan.num_ranks() > 1; }

double attention_pairs(const MicroBatch& micro_batch) {
  double pairs = 0;
  for (const Document& document : micro_batch.documents) {
    const auto length = static_cast<double>(document.length);
    pairs += length * (length + 1) / 2;
  }
  return pairs;
}

}  // namespace

std::optional<StepPlace> busiest_in_rings(const StepPlan& plan) {
  std::optional<StepPlace> busiest;
  double most = 0;
  for (std::size_t dp = 0; dp < plan.shard_plans.size(); ++dp) {
    for (std::size_t m = 0; m < plan.shard_plans[dp].size(); ++m) {
      if (!in_rings(plan.shard_plans[dp][m])) continue;
      const double pairs = attention_pairs(plan.micro_batches[dp][m]);
      if (busiest && pairs <= most) continue;
      busiest = StepPlace{.dp = dp, .micro_batch = m};
      most = pairs;
    }
  }
  return busiest;
}

std::optional<ordered_json> step_placement_json(const StepPlan& plan, const CostModel* cost) {
  const std::optional<StepPlace> place = busiest_in_rings(plan);
  if (!place) return std::nullopt;
  const ShardPlan& shown = plan.shard_plans[place->dp][place->micro_batch];
  std::int64_t candidates = 0;
  for (const auto& pipeline : plan.shard_plans) candidates += std::count_if(pipeline.begin(), pipeline.end(), in_rings);
  ordered_json value{
      {"step", plan.step}, {"dp_rank", place->dp}, {"micro_batch", place->micro_batch}, {"micro_batches", candidates}};
  if (cost != nullptr) value["zones"] = zones_json(*cost, std::max(kLeastLongest, shown.num_tokens()));
  value["placement"] = cost != nullptr ? placement_json(shown, *cost) : untimed_placement_json(shown);
  return value;
}

}  // namespace ballast::cli
