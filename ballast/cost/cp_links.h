// How the ranks of a context parallel group are joined: what placement, rings, routing and moves are decided by
// (Zeppelin; requirements Z1 to Z6). Rates are of what one GPU of a rank has to send, where a rank is several.
#pragma once

#include <limits>
#include <vector>

#include "ballast/base/units.h"
#include "ballast/ir/routing.h"

namespace ballast {

struct CpLinks {
  int ranks_per_node = 0;  // consecutive; 0: all share a node
  // Network cards of a node, as its ranks share them: slot s sends and receives over lane s * lanes / ranks_per_node.
  int lanes_per_node = 1;
  double lane_bytes_per_second = std::numeric_limits<double>::infinity();
  Seconds lane_latency = 0;
  std::vector<double> lane_rates = {};                                     // by lane, where they differ
  double node_bytes_per_second = std::numeric_limits<double>::infinity();  // one rank, one way, inside a node
  Seconds node_latency = 0;
  bool routed = false;            // a message between nodes may be spread over several lanes (Z5)
  Bytes chunk_bytes = 512 << 10;  // of routed messages: hops overlap chunk by chunk

  int node_of(int rank) const { return ranks_per_node > 0 ? rank / ranks_per_node : 0; }
  int lane_of(int rank) const {
    return ranks_per_node > 0 ? rank % ranks_per_node * lanes_per_node / ranks_per_node : 0;
  }
  double lane_rate(int lane) const {
    return lane_rates.empty() ? lane_bytes_per_second : lane_rates[static_cast<std::size_t>(lane)];
  }
};

// One message between two ranks: it keeps its lanes busy for `occupied`, and is there `latency` later.
struct MessageCost {
  int proxies = 1;  // lanes it is spread over; 0: it stays in its node
  Seconds occupied = 0;
  Seconds latency = 0;
  Seconds total() const { return occupied + latency; }
};

// The number of proxies is what makes the message fastest: 1, or a divisor of the ranks of a node, at most its lanes.
// Section "routing": b_inter n becomes b_intra n (x-1)/x + b_inter n/x + b_intra n (x-1)/x; here the three overlap
// chunk by chunk, so that the longest of them counts, and the way of a chunk to every proxy and from there.
MessageCost message_cost(const CpLinks& links, int from, int to, Bytes bytes);
MessageCost message_cost(const CpLinks& links, int from, int to, Bytes bytes, int proxies);

// What the runtime's messages follow: message_cost's choice of proxies, by size. Off where the links are not routed.
Routing routing_of(const CpLinks& links);

// The lane of path k of x, of a rank: paths of one message use lanes that differ.
int path_lane(const CpLinks& links, int rank, int path, int proxies);

}  // namespace ballast
