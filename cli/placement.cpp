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

template <class T>
using ByQueue = std::array<T, 3>;

template <class T>
ordered_json by_queue(const ByQueue<T>& values) {
  ordered_json found = ordered_json::object();
  for (std::size_t q = 0; q < values.size(); ++q) found[queue_name(static_cast<AttentionQueue>(q))] = values[q];
  return found;
}

std::vector<AttentionQueue> queue_of_documents(const ShardPlan& plan) {
  std::vector<AttentionQueue> queues(plan.cu_seqlens.empty() ? 0 : plan.cu_seqlens.size() - 1, AttentionQueue::local);
  for (const Ring& ring : plan.rings) {
    for (const std::size_t document : ring.documents) queues[document] = plan.queue_of(ring);
  }
  return queues;
}

double over(Seconds seconds, Seconds even_share) { return even_share > 0 ? seconds / even_share : 1; }

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
  return {{"longest_tokens", longest},
          {"intra_node_from_tokens", from_tokens(zones.intra_node)},
          {"inter_node_from_tokens", from_tokens(zones.inter_node)},
          {"ranks_per_node", cost.cp_links().ranks_per_node},
          {"points", std::move(points)},
          {"cost", cost.name()}};
}

ordered_json untimed_placement_json(const ShardPlan& plan) {
  const bool in_rings = plan.attends_in_rings();
  const std::vector<AttentionQueue> queues = queue_of_documents(plan);
  ByQueue<std::int64_t> documents = {};
  std::int64_t all = 0;
  for (std::size_t d = 0; d < queues.size(); ++d) {
    if (plan.cu_seqlens[d + 1] == plan.cu_seqlens[d]) continue;
    ++all;
    if (in_rings) ++documents[static_cast<std::size_t>(queues[d])];
  }
  Tokens moved = 0;
  for (const TokenMove& move : plan.moves) moved += move.tokens;
  ordered_json ranks = ordered_json::array();
  for (int rank = 0; rank < plan.num_ranks(); ++rank) {
    ordered_json& value = ranks.emplace_back(ordered_json{{"rank", rank},
                                                          {"node", plan.node_of(rank)},
                                                          {"tokens", plan.num_tokens(rank)},
                                                          {"linear_tokens", plan.linear_tokens(rank)}});
    if (!in_rings) continue;
    ByQueue<Tokens> tokens = {};
    std::size_t document = 0;
    plan.for_each_block(rank, [&](const AttentionBlock& block) {
      document = plan.document_of(block.queries.begin, document);  // ranges ascend
      tokens[static_cast<std::size_t>(queues[document])] += block.queries.end - block.queries.begin;
    });
    value["queue_tokens"] = by_queue(tokens);
  }
  return {{"sharding", plan.sharding}, {"tokens", plan.num_tokens()},
          {"documents", all},          {"ranks_per_node", plan.ranks_per_node},
          {"moved_tokens", moved},     {"queues", by_queue(documents)},
          {"ranks", std::move(ranks)}};
}

ordered_json placement_json(const ShardPlan& plan, const CostModel& cost) {
  ordered_json placement = untimed_placement_json(plan);
  const Seconds even_share = layer_even_share(plan.cu_seqlens, plan.num_ranks(), cost);
  const Seconds slowest = predict_slowest_layer(plan, cost);
  placement["slowest_seconds"] = slowest;
  placement["even_share_seconds"] = even_share;
  placement["over_even_share"] = over(slowest, even_share);
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
  placement["bytes"] = {{"inside_nodes", inside}, {"across_nodes", across}};
  for (ordered_json& rank : placement["ranks"]) rank["forward"] = ordered_json::array();
  std::vector<Seconds> ends(plan.ranges.size(), 0);
  const auto add = [&](int rank, const char* part, Seconds begin, Seconds end) {
    placement["ranks"][static_cast<std::size_t>(rank)]["forward"].push_back({part, begin, end});
    ends[static_cast<std::size_t>(rank)] = end;
  };
  for (const RingSpan& span : spans) add(span.rank, part_name(span), span.begin, span.end);
  for (int rank = 0; plan.attends_in_rings() && rank < plan.num_ranks(); ++rank) {
    const Tokens tokens = plan.linear_tokens(rank);
    const Seconds begin = ends[static_cast<std::size_t>(rank)];
    if (tokens > 0) add(rank, "linear", begin, begin + cost.layer(Pass::forward, tokens));
  }
  return placement;
}

ordered_json trials_json(const std::vector<SharderTrial>& trials, Seconds even_share) {
  ordered_json found = ordered_json::object();
  for (const SharderTrial& trial : trials) {
    std::string key = trial.name;
    std::replace(key.begin(), key.end(), '-', '_');
    found[key] = {{"seconds", trial.slowest}, {"over_even_share", over(trial.slowest, even_share)}};
  }
  return found;
}

std::string why_chosen(const std::vector<SharderTrial>& trials, Seconds even_share) {
  const std::vector<std::size_t> order = by_seconds(trials);
  std::string text;
  for (const std::size_t i : order) {
    text += fmt::format("{}{} {:.4g}", text.empty() ? "" : ", ", trials[i].name, trials[i].slowest);
  }
  const Seconds best = trials[order.front()].slowest;
  return fmt::format(
      "slowest rank of a layer, seconds: {}; {:+.1f}% against everything uncut and evenly shared, {:.4g}", text,
      100 * (over(best, even_share) - 1), even_share);
}

}  // namespace ballast::cli
