#include "ballast/cost/zones.h"

#include <algorithm>

namespace ballast {

namespace {

bool hides(const CostModel& cost, const CpLinks& links, Tokens length, bool across_nodes) {
  return largest_hidden_ring(cost, links, length, cost.layer_attention(length), 2, across_nodes) == 2;
}

// The first length from which on rings of two hide their messages, by bisection: compute grows faster than bytes.
Tokens crossing(const CostModel& cost, const CpLinks& links, Tokens longest, bool across_nodes) {
  if (!hides(cost, links, longest, across_nodes)) return -1;
  Tokens low = 1;
  Tokens high = longest;
  while (low < high) {
    const Tokens middle = low + (high - low) / 2;
    if (hides(cost, links, middle, across_nodes)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace

Seconds round_transfer(const CostModel& cost, const CpLinks& links, Tokens tokens, bool across_nodes) {
  if (across_nodes && links.ranks_per_node == 0) across_nodes = false;
  const int peer = across_nodes ? links.ranks_per_node : 0;
  const auto seconds = [&](Bytes bytes) { return message_cost(links, 0, peer, bytes).total(); };
  return 2 * seconds(tokens * cost.kv_bytes_per_token()) + seconds(tokens * cost.kv_gradient_bytes_per_token());
}

int largest_hidden_ring(const CostModel& cost, const CpLinks& links, Tokens length, Seconds attention, int most,
                        bool across_nodes) {
  const auto hidden = [&](int ring) {
    const auto ranks = static_cast<double>(ring);
    return attention / (ranks * ranks) >= round_transfer(cost, links, (length + ring - 1) / ring, across_nodes);
  };
  int low = 1;
  int high = std::max(1, most);
  while (low < high) {
    const int middle = low + (high - low + 1) / 2;
    if (hidden(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

Zones find_zones(const CostModel& cost, Tokens longest) {
  const CpLinks links = cost.cp_links();
  Zones zones;
  zones.intra_node = crossing(cost, links, longest, false);
  zones.inter_node = links.ranks_per_node > 0 ? crossing(cost, links, longest, true) : zones.intra_node;
  for (Tokens length = 64; length <= longest; length *= 2) {
    zones.points.push_back({.length = length,
                            .attention = cost.layer_attention(length),
                            .linear = cost.layer(Pass::forward, length) + cost.layer(Pass::backward, length),
                            .intra_node = round_transfer(cost, links, length, false),
                            .inter_node = round_transfer(cost, links, length, true)});
  }
  return zones;
}

}  // namespace ballast
