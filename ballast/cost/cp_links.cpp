#include "ballast/cost/cp_links.h"

#include <algorithm>

namespace ballast {

int path_lane(const CpLinks& links, int rank, int path, int proxies) {
  const int slot = (rank % links.ranks_per_node + path * (links.ranks_per_node / proxies)) % links.ranks_per_node;
  return slot * links.lanes_per_node / links.ranks_per_node;
}

MessageCost message_cost(const CpLinks& links, int from, int to, Bytes bytes, int proxies) {
  const auto size = static_cast<double>(bytes);
  if (links.node_of(from) == links.node_of(to)) {
    return {.proxies = 0, .occupied = size / links.node_bytes_per_second, .latency = links.node_latency};
  }
  if (proxies == 1) {
    const double rate = std::min(links.lane_rate(links.lane_of(from)), links.lane_rate(links.lane_of(to)));
    return {.proxies = 1, .occupied = size / rate, .latency = links.lane_latency};
  }
  double rate = std::numeric_limits<double>::infinity();
  for (int path = 0; path < proxies; ++path) {
    rate = std::min({rate, links.lane_rate(path_lane(links, from, path, proxies)),
                     links.lane_rate(path_lane(links, to, path, proxies))});
  }
  const double piece = size / proxies;
  // One chunk to each proxy: the last of the first ones is on its card after this, and of the last ones at its goal.
  const double chunks = std::min(piece, static_cast<double>(links.chunk_bytes)) * (proxies - 1);
  const Seconds across = piece / rate;
  const Seconds inside = size * (proxies - 1) / proxies / links.node_bytes_per_second;
  return {.proxies = proxies,
          .occupied = std::max(across, inside),
          .latency = links.lane_latency + 2 * (links.node_latency + chunks / links.node_bytes_per_second) +
                     (inside > across ? chunks / (proxies - 1) / rate : 0)};
}

MessageCost message_cost(const CpLinks& links, int from, int to, Bytes bytes) {
  MessageCost best = message_cost(links, from, to, bytes, 1);
  if (!links.routed || best.proxies == 0) return best;
  for (int proxies = 2; proxies <= std::min(links.lanes_per_node, links.ranks_per_node); ++proxies) {
    if (links.ranks_per_node % proxies != 0) continue;
    const MessageCost routed = message_cost(links, from, to, bytes, proxies);
    if (routed.total() < best.total()) best = routed;
  }
  return best;
}

namespace {

std::vector<RoutingRule> rules_between(const CpLinks& links, int from_slot, int to_slot) {
  std::vector<RoutingRule> rules;
  constexpr Bytes kSmallest = 1 << 10;
  constexpr Bytes kLargest = 1 << 30;
  for (Bytes bytes = kSmallest; bytes <= kLargest; bytes *= 2) {
    const int proxies = message_cost(links, from_slot, links.ranks_per_node + to_slot, bytes).proxies;
    if (proxies != (rules.empty() ? 1 : rules.back().proxies)) rules.push_back({bytes, proxies});
  }
  return rules;
}

}  // namespace

Routing routing_of(const CpLinks& links) {
  Routing routing;
  if (!links.routed || links.ranks_per_node == 0) return routing;
  routing.ranks_per_node = links.ranks_per_node;
  routing.cards_per_node = links.lanes_per_node;
  routing.chunk_bytes = links.chunk_bytes;
  if (links.lane_rates.empty()) {
    routing.rules = rules_between(links, 0, 0);
    return routing;
  }
  for (int from = 0; from < links.ranks_per_node; ++from) {
    for (int to = 0; to < links.ranks_per_node; ++to) routing.rules_by_slots.push_back(rules_between(links, from, to));
  }
  return routing;
}

}  // namespace ballast
