#include "cli/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ballast/cost/ring_pass.h"
#include "ballast/cost/zones.h"

namespace ballast::cli {

namespace {

using nlohmann::ordered_json;

const char* queue_name(AttentionQueue queue) {
  switch (queue) {
    case AttentionQueue::local:
      return "local";
    case AttentionQueue::intra_node:
      return "intra_node";
    case AttentionQueue::inter_node:
      break;
  }
  return "inter_node";
}

const char* part_name(const RingSpan& span) {
  switch (span.kind) {
    case RingSpan::Kind::attend:
      return queue_name(span.queue);
    case RingSpan::Kind::await_ring:
      return "wait";
    case RingSpan::Kind::move:
      break;
  }
  return "move";
}

ordered_json from_tokens(Tokens tokens) { return tokens < 0 ? ordered_json(nullptr) : ordered_json(tokens); }

std::vector<std::size_t> by_seconds(const std::vector<SharderTrial>& trials) {
  std::vector<std::size_t> order(trials.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return trials[a].slowest < trials[b].slowest; });
  return order;
}

}  // namespace

ordered_json zones_json(const CostModel& cost, Tokens longest) {
  const Zones zones = find_zones(cost, longest);
  ordered_json points = ordered_json::array();
  for (const ZonePoint& point : zones.points) {
    points.push_back({{"length_tokens", point.length},
                      {"attention_seconds", point.attention},
                      {"linear_seconds", point.linear},
                      {"intra_node_seconds", point.intra_node},
                      {"inter_node_seconds", point.inter_node}});
  }
  return {{"intra_node_from_tokens", from_tokens(zones.intra_node)},
          {"inter_node_from_tokens", from_tokens(zones.inter_node)},
          {"ranks_per_node", cost.cp_links().ranks_per_node},
          {"points", std::move(points)},
          {"cost", cost.name()}};
}

ordered_json placement_json(const ShardPlan& plan, const CostModel& cost) {
  const Seconds bound = layer_lower_bound(plan.cu_seqlens, plan.num_ranks(), cost);
  const Seconds slowest = predict_slowest_layer(plan, cost);
  std::array<std::int64_t, 3> queues = {};
  std::int64_t all = 0;
  for (std::size_t d = 0; d + 1 < plan.cu_seqlens.size(); ++d)
    all += plan.cu_seqlens[d + 1] > plan.cu_seqlens[d] ? 1 : 0;
  for (const Ring& ring : plan.rings) {
    queues[static_cast<std::size_t>(plan.queue_of(ring))] += static_cast<std::int64_t>(ring.documents.size());
  }
  queues[0] = plan.attends_in_rings() ? all - queues[1] - queues[2] : 0;
  Tokens moved = 0;
  for (const TokenMove& move : plan.moves) moved += move.tokens;

  std::vector<RingSpan> spans;
  Bytes inside = 0;
  Bytes across = 0;
  if (plan.attends_in_rings()) {
    const std::vector<RingPass> passes = ring_passes(plan, cost);
    passes[0].run(std::vector<Seconds>(plan.ranges.size(), 0), &spans);
    for (const RingPass& pass : passes) {
      inside += pass.bytes_inside();
      across += pass.bytes_across();
    }
  }
  ordered_json ranks = ordered_json::array();
  for (int rank = 0; rank < plan.num_ranks(); ++rank) {
    ordered_json forward = ordered_json::array();
    for (const RingSpan& span : spans) {
      if (span.rank == rank) forward.push_back({part_name(span), span.begin, span.end});
    }
    ranks.push_back({{"rank", rank},
                     {"node", plan.node_of(rank)},
                     {"tokens", plan.num_tokens(rank)},
                     {"linear_tokens", plan.linear_tokens(rank)},
                     {"forward", std::move(forward)}});
  }
  return {{"sharding", plan.sharding},
          {"tokens", plan.num_tokens()},
          {"documents", all},
          {"ranks_per_node", plan.ranks_per_node},
          {"slowest_seconds", slowest},
          {"lower_bound_seconds", bound},
          {"lower_bound_gap", bound > 0 ? slowest / bound - 1 : 0},
          {"bytes", {{"inside_nodes", inside}, {"across_nodes", across}}},
          {"moved_tokens", moved},
          {"queues", {{"local", queues[0]}, {"intra_node", queues[1]}, {"inter_node", queues[2]}}},
          {"ranks", std::move(ranks)}};
}

ordered_json trials_json(const std::vector<SharderTrial>& trials, Seconds lower_bound) {
  ordered_json found = ordered_json::object();
  for (const SharderTrial& trial : trials) {
    found[trial.name] = {{"seconds", trial.slowest},
                         {"over_lower_bound", lower_bound > 0 ? trial.slowest / lower_bound : 1}};
  }
  return found;
}

std::string why_chosen(const std::vector<SharderTrial>& trials, Seconds lower_bound) {
  const std::vector<std::size_t> order = by_seconds(trials);
  std::string text;
  for (const std::size_t i : order) {
    text += fmt::format("{}{} {:.4g}", text.empty() ? "" : ", ", trials[i].name, trials[i].slowest);
  }
  const Seconds best = trials[order.front()].slowest;
  return fmt::format(
      "slowest rank of a layer, seconds: {}; {:+.1f}% against everything uncut and evenly shared, {:.4g}", text,
      lower_bound > 0 ? 100 * (best / lower_bound - 1) : 0.0, lower_bound);
}

}  // namespace ballast::cli
