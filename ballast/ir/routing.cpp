#include "ballast/ir/routing.h"

#include <algorithm>
#include <string>

namespace ballast {

bool Routing::active(int world_size) const {
  const auto routes = [](const std::vector<RoutingRule>& list) {
    return std::any_of(list.begin(), list.end(), [](const RoutingRule& rule) { return rule.proxies > 1; });
  };
  return ranks_per_node > 0 && world_size > ranks_per_node &&
         (routes(rules) || std::any_of(rules_by_slots.begin(), rules_by_slots.end(), routes));
}

const std::vector<RoutingRule>& Routing::rules_of(int from, int to) const {
  if (rules_by_slots.empty()) return rules;
  return rules_by_slots[static_cast<std::size_t>(from % ranks_per_node * ranks_per_node + to % ranks_per_node)];
}

int Routing::proxies(int from, int to, Bytes bytes) const {
  if (node_of(from) == node_of(to)) return 1;
  int proxies = 1;
  for (const RoutingRule& rule : rules_of(from, to)) {
    if (rule.at_least <= bytes) proxies = rule.proxies;
  }
  return bytes < proxies ? 1 : proxies;
}

RoutedPart Routing::part(int from, int to, Bytes bytes, int k) const {
  const int parts = proxies(from, to, bytes);
  BALLAST_ASSERT(k >= 0 && k < parts, "a part of the message");
  if (parts == 1) return {.sender_proxy = from, .receiver_proxy = to, .begin = 0, .end = bytes};
  const auto proxy = [&](int rank) {
    const int slot = (rank % ranks_per_node + k * (ranks_per_node / parts)) % ranks_per_node;
    return node_of(rank) * ranks_per_node + slot;
  };
  // Not bytes * k / parts, which may overflow. The first bytes % parts parts are a byte longer.
  const Bytes each = bytes / parts;
  const Bytes longer = bytes % parts;
  const Bytes begin = each * k + std::min<Bytes>(k, longer);
  return {.sender_proxy = proxy(from),
          .receiver_proxy = proxy(to),
          .begin = begin,
          .end = begin + each + (k < longer ? 1 : 0)};
}

Violations Routing::violations(int world_size) const {
  Violations found;
  if (ranks_per_node < 0) found.push_back("ranks_per_node must be 0 (one node) or more");
  if (ranks_per_node <= 0) return found;
  const std::string ranks = std::to_string(ranks_per_node);
  if (world_size > ranks_per_node && world_size % ranks_per_node != 0) {
    found.push_back("ranks_per_node = " + ranks + " does not divide the " + std::to_string(world_size) + " ranks");
  }
  if (cards_per_node < 1 || cards_per_node > ranks_per_node) {
    found.push_back("cards_per_node = " + std::to_string(cards_per_node) + " must be 1 to ranks_per_node, " + ranks);
  }
  if (chunk_bytes < 1) found.push_back("chunk_bytes must be 1 or more");
  const auto check = [&](const std::vector<RoutingRule>& list) {
    Bytes before = -1;
    for (const RoutingRule& rule : list) {
      const std::string what = "rule at_least = " + std::to_string(rule.at_least);
      if (rule.at_least <= before) found.push_back(what + ": must be 0 or more and over the rule before");
      before = rule.at_least;
      const std::string proxies = what + ": proxies = " + std::to_string(rule.proxies);
      if (rule.proxies < 1 || ranks_per_node % rule.proxies != 0) {
        found.push_back(proxies + " must divide ranks_per_node, " + ranks);
      } else if (rule.proxies > cards_per_node) {
        found.push_back(proxies + " must be at most cards_per_node, " + std::to_string(cards_per_node));
      }
    }
  };
  check(rules);
  if (const std::size_t pairs = rules_by_slots.size();
      pairs != 0 && pairs != static_cast<std::size_t>(ranks_per_node) * static_cast<std::size_t>(ranks_per_node)) {
    found.push_back("rules_by_slots: " + std::to_string(pairs) + " lists, not one of each pair of " + ranks + " slots");
  }
  std::for_each(rules_by_slots.begin(), rules_by_slots.end(), check);
  return found;
}

}  // namespace ballast
