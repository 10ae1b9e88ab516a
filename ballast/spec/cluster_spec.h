// The machine a run is planned for: GPUs joined by tiers of fabric, from the inside out. Global rank r is the r-th GPU
// from the inside out (requirement L5).
#pragma once

#include <string>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/base/units.h"

namespace ballast {

// How GPUs that are no nearer to each other than this exchange data.
struct FabricTier {
  std::string name;                // "nvlink", "infiniband", "spine"
  int gpus = 0;                    // that it joins: 8 of a node, 3,072 of a pod; 0, of the last tier: all
  double bytes_per_second = 0;     // one GPU, one way, large messages, all GPUs of the tier at once
  Seconds latency = 0;             // of a message from one GPU to the next
  double other_tenants_share = 0;  // of the bandwidth, that others take
  // {bytes, share}, bytes rising: how much of bytes_per_second an exchange reaches in which every GPU sends so many,
  // where that was measured; linear in the logarithm of the size between, the nearest outside. Empty: all of it.
  std::vector<std::vector<double>> share_by_bytes = {};

  // Where every GPU of an exchange sends `bytes`.
  double available_bytes_per_second(double bytes) const;
  bool operator==(const FabricTier&) const = default;
};

struct ClusterSpec {
  std::string name;
  std::string device;             // file of a device profile, relative to the cluster's own
  std::vector<FabricTier> tiers;  // inside out, each joins more GPUs than the one before
  Bytes memory_bytes = 0;         // of a GPU
  int cards_per_node = 0;         // network cards; 0: one a GPU

  int cards() const { return cards_per_node > 0 ? cards_per_node : gpus_per_node(); }

  int gpus_per_node() const { return tiers.front().gpus; }
  // The tier over which GPUs a and b are joined: index in `tiers`.
  std::size_t tier_of(int a, int b) const;

  Violations violations() const;
  bool operator==(const ClusterSpec&) const = default;
};

}  // namespace ballast
