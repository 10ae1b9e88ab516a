// How a message between two nodes is spread over the network cards of both ("routing" in the Zeppelin paper): it is cut
// into parts, and each part goes from the sender to a proxy on its node, from there across to a proxy on the receiver's
// node, and from there to the receiver. Sender and receiver work the same parts out of the bytes, so nothing is agreed.
#pragma once

#include <vector>

#include "ballast/base/error.h"
#include "ballast/base/units.h"

namespace ballast {

// Messages of this many bytes or more, up to the next rule, go over so many proxies.
struct RoutingRule {
  Bytes at_least = 0;
  int proxies = 1;  // 1: direct
  bool operator==(const RoutingRule&) const = default;
};

// One part of a message, and its way. Part 0 is the direct one: its proxies are the sender and the receiver themselves.
struct RoutedPart {
  int sender_proxy = 0;    // global ranks
  int receiver_proxy = 0;  // on the receiver's node
  Bytes begin = 0;         // of the message: [begin, end)
  Bytes end = 0;
  bool operator==(const RoutedPart&) const = default;
};

struct Routing {
  int ranks_per_node = 0;  // consecutive global ranks; 0: one node, and nothing is routed
  int cards_per_node = 0;  // 1 to ranks_per_node; the rank in slot s of its node uses card s * cards / ranks
  Bytes chunk_bytes = 0;   // what a proxy receives before it passes it on: the stages of a part overlap by chunks
  std::vector<RoutingRule> rules = {};  // rising in at_least; messages below the first go direct
  // Where cards differ, instead of `rules`: of the sender's slot * ranks_per_node + the receiver's.
  std::vector<std::vector<RoutingRule>> rules_by_slots = {};

  // Whether any message between ranks of this world may be routed.
  bool active(int world_size) const;
  const std::vector<RoutingRule>& rules_of(int from, int to) const;
  int node_of(int rank) const { return ranks_per_node == 0 ? 0 : rank / ranks_per_node; }
  // Over how many proxies a message of `bytes` goes; 1 is direct, as all inside a node are, and a message that has not
  // a byte for each proxy.
  int proxies(int from, int to, Bytes bytes) const;
  // Part k of such a message, 0 <= k < proxies(from, to, bytes): proxies are k * ranks_per_node / proxies slots on from
  // sender and receiver, so that no two parts use one card. REQUIRES: violations() is empty.
  RoutedPart part(int from, int to, Bytes bytes, int k) const;

  Violations violations(int world_size) const;
  bool operator==(const Routing&) const = default;
};

}  // namespace ballast
