// Zeppelin's zones (requirement Z1, its section on the sequence partitioner): how far a sequence of a length may be cut
// so that attention hides the transfers. All from the cost model; nothing is a constant.
#pragma once

#include <vector>

#include "ballast/cost/cost_model.h"

namespace ballast {

// Of one layer, forward and backward: a sequence on one rank, and its keys, values and their gradients sent once.
struct ZonePoint {
  Tokens length = 0;
  Seconds attention = 0;
  Seconds linear = 0;
  Seconds intra_node = 0;
  Seconds inter_node = 0;
};

// Lengths from which on a ring of two ranks hides its messages; -1: none up to the longest asked for.
struct Zones {
  Tokens intra_node = -1;  // in a node: below, sequences stay on one rank
  Tokens inter_node = -1;  // across nodes: below, they stay in a node
  std::vector<ZonePoint> points;
};

// Lengths double from 64 to `longest`; crossings are exact to a token.
Zones find_zones(const CostModel& cost, Tokens longest);

// Messages of one rank in one round of a ring, both passes, of `tokens` tokens.
Seconds round_transfer(const CostModel& cost, const CpLinks& links, Tokens tokens, bool across_nodes);

// The largest ring, of at most `most` ranks, whose rounds take as long to attend as their messages; 1: none does.
// `attention`: of the whole sequence on one rank, both passes.
int largest_hidden_ring(const CostModel& cost, const CpLinks& links, Tokens length, Seconds attention, int most,
                        bool across_nodes);

}  // namespace ballast
