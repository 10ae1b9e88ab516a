// Cost of a run on a cluster that is not at hand: compute from a device's published rates, exchanges from where the
// ranks of a group sit.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ballast/cost/cost_model.h"
#include "ballast/ir/device_profile.h"
#include "ballast/spec/cluster_spec.h"
#include "ballast/spec/mesh_order.h"
#include "ballast/spec/parallel_dims.h"
#include "ballast/spec/software_spec.h"

namespace ballast {

// How a run's mesh lies over a cluster.
struct ClusterMesh {
  ParallelDims dims;
  int tp = 1;  // GPUs of a tensor parallel group; they do the same work, so that one rank stands for all
  MeshOrder order = {};
  bool routed = true;  // messages of context parallel ranks may be spread over a node's cards (cp_links.h)
};

// Inside a node exchanges take what the device profile measured for as many GPUs; elsewhere what the tiers allow
// (network.h); sends between stages what the slowest pair of neighbours allows. `overlap_tp`: a layer's tensor parallel
// exchanges are cut in tp pieces and run beside its matrix products, so that one piece is exposed, and what does not
// fit beside them. Throws UserError as derive_profile does, and where the cluster or the profile have violations.
std::unique_ptr<CostModel> make_cluster_cost(const DeviceProfile& device, const ClusterSpec& cluster,
                                             const ModelSpec& model, const ClusterMesh& mesh, bool overlap_tp = false,
                                             const SoftwareSpec& software = {});

// What does not depend on the mesh but for its tp, for those who try many meshes: derived once, shared by all.
class DeviceCost {
 public:
  // Throws UserError as derive_profile does.
  DeviceCost(const DeviceProfile& device, const ModelSpec& model, int tp, const SoftwareSpec& software = {});
  const CostModel& compute() const { return *compute_; }
  const std::string& device() const { return device_; }
  // Whether a collective inside a node was measured over so many GPUs.
  bool measured(Collective operation, int ranks) const;
  Seconds accumulation(std::int64_t parameters) const;  // of their gradients, at one backward

 private:
  std::string device_;
  double accumulation_seconds_ = 0;  // a parameter
  std::shared_ptr<const CostModel> compute_;
  std::map<Collective, std::vector<int>> measured_ranks_;
};
std::unique_ptr<CostModel> make_cluster_cost(std::shared_ptr<const DeviceCost> device, const ClusterSpec& cluster,
                                             const ModelSpec& model, const ClusterMesh& mesh, bool overlap_tp = false);

// The outermost tier that the groups of each axis span, of those with more than one member: an index in cluster.tiers.
std::map<Axis, int> link_tiers(const ClusterSpec& cluster, const ClusterMesh& mesh);

// The axes whose groups do not lie within a node.
std::vector<Axis> axes_across_nodes(const ClusterSpec& cluster, const ClusterMesh& mesh);

}  // namespace ballast
