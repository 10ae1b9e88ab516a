// Zeppelin's sequence partitioner (requirements Z1 to Z3, Z6): every document gets the layout that its length deserves.
// The paper states two levels and zones; its thresholds and tie-breaks are not published. Ours:
//
// - A document is cut into a ring of as many ranks as its attention exceeds a rank's share of all attention (times a
//   slack), but of no more than hide the transfers: the largest G for which a round's attention, A/G^2, takes as long
//   as the round's messages, of 1/G of the document, over the tier that the ring needs. Where it is longer than a rank
//   may hold, it is cut so that it fits, whether that pays or not.
// - Level 1: rings larger than a node take as many nodes as they need, those with least load; every other document one.
//   Level 2: of a node's ranks those with least load that have room. Documents whole on one rank go, longest first, to
//   the least loaded rank of all, or to the one with most room.
// - Load is attention, and `token_weight` times the linear modules, which tokens can be moved for later.
// - Several slacks and token weights are tried, and one ring over all ranks; the fastest slowest rank by predict_layer
//   wins, moves included where they pay. Where that would take long (many documents and ranks), an estimate decides.
#pragma once

#include <vector>

#include "ballast/cost/cost_model.h"
#include "ballast/ir/shard_plan.h"
#include "ballast/sharding/sharder.h"

namespace ballast {

struct ZeppelinPlan {
  ShardPlan plan;
  Seconds slowest = 0;     // predicted, of one layer; of an estimate where so said
  Seconds even_share = 0;  // layer_even_share
  bool estimated = false;
  double gap() const { return even_share > 0 ? slowest / even_share - 1 : 0; }
};

// Throws UserError where the ranks hold fewer tokens than there are, saying by how many.
ZeppelinPlan shard_zeppelin(const std::vector<Tokens>& cu_seqlens, int num_ranks, const CostModel& cost,
                            const PlacementOptions& options = {});

}  // namespace ballast
