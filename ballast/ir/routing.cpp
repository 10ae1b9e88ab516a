#include "ballast/ir/routing.h"

#include <algorithm>
#include <string>

namespace ballast {

bool Routing::active(int world_size) const {
  return ranks_per_node > 0 && world_size > ranks_per_node &&
         std::any_of(rules.begin(), rules.end(), [](const RoutingRule& rule) { return rule.proxies > 1; });
}

int Routing::proxies(int from, int to, Bytes bytes) const {
  if (node_of(from) == node_of(to)) return 1;
  int proxies = 1;
  for (const RoutingRule& rule : rules) {
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
  Bytes before = -1;
  for (const RoutingRule& rule : rules) {
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
  return found;
}

}  // namespace ballast
