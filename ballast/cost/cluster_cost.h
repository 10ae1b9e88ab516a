// Cost of a run on a cluster that is not at hand: compute from a device's published rates, exchanges from where the
// ranks of a group sit.
#pragma once

#include <memory>

#include "ballast/cost/cost_model.h"
#include "ballast/ir/device_profile.h"
#include "ballast/spec/cluster_spec.h"
#include "ballast/spec/parallel_dims.h"

namespace ballast {

// Ranks of `dims` are tensor parallel groups of `tp` GPUs side by side: all GPUs of such a group do the same work, so
// one stands for all. Mapped from the inside out: tp, cp, pp, dp. Inside a node exchanges take what the device profile
// measured for as many GPUs; elsewhere what the tiers allow (network.h). `overlap_tp`: a layer's tensor parallel
// exchanges are cut in tp pieces and run beside its matrix products, so that one piece is exposed, and what does not
// fit beside them. Throws UserError as derive_profile does, and where the cluster or the profile have violations.
std::unique_ptr<CostModel> make_cluster_cost(const DeviceProfile& device, const ClusterSpec& cluster,
                                             const ModelSpec& model, const ParallelDims& dims, int tp,
                                             bool overlap_tp = false);

}  // namespace ballast
