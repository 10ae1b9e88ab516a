// Collectives on a cluster: from where a group's members sit to how long an exchange takes (requirement L5).
//
// A group of n GPUs is c_0 in a node, c_1 such nodes in a pod, and so on; n = c_0 c_1 ... Members of one inner domain
// each have a lane of the outer tier to themselves, so that a ring that crosses tier t moves at c_0 ... c_(t-1) times a
// GPU's bandwidth there. For B bytes (gathered, or of the reduced tensor):
//   ring          all-gather, reduce-scatter: B (n-1)/n through the slowest tier; (n-1) hops, each at its tier's
//   latency
//                 all-reduce: twice that
//   hierarchical  all-gather from the outermost tier in: each member gathers its lane's share over the outer tier, then
//                 its node shares out what it has; reduce-scatter the other way round; all-reduce: both
//   tree          all-reduce: up and down a binary tree of the domains, 2 B through the slowest tier
#pragma once

#include <vector>

#include "ballast/cost/cost_model.h"
#include "ballast/spec/cluster_spec.h"

namespace ballast {

enum class CollectiveAlgorithm { automatic, ring, tree, hierarchical };  // automatic: the fastest

// How the GPUs of a group are spread: by tier, into how many domains of the tier inside it (of the innermost: GPUs) a
// domain's members divide. A group of one is {1, 1, ...}.
struct GroupPlacement {
  std::vector<int> parts;  // c_0, c_1, ...
  int size() const;
};

// A group that is not spread evenly counts as the larger one that is.
GroupPlacement place_group(const ClusterSpec& cluster, const std::vector<int>& gpus);

// 0 for a group of one. `operation` is no send. Throws UserError for a tree that is no all-reduce.
Seconds collective_seconds(const ClusterSpec& cluster, const GroupPlacement& group, Collective operation, Bytes bytes,
                           CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic);

// Of one message between two GPUs.
Seconds send_seconds(const ClusterSpec& cluster, int from, int to, Bytes bytes);

}  // namespace ballast
