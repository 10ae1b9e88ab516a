#include "ballast/spec/cluster_spec.h"

#include <cmath>

namespace ballast {

std::size_t ClusterSpec::tier_of(int a, int b) const {
  for (std::size_t t = 0; t + 1 < tiers.size(); ++t) {
    if (a / tiers[t].gpus == b / tiers[t].gpus) return t;
  }
  return tiers.size() - 1;
}

Violations ClusterSpec::violations() const {
  Violations found;
  if (device.empty()) found.push_back("device is missing: name a device profile");
  if (memory_bytes < 1) found.push_back("memory_bytes: must be over 0");
  if (tiers.empty()) return {"a cluster needs a tier: [[tier]] name, gpus, bytes_per_second, latency_seconds"};
  for (std::size_t t = 0; t < tiers.size(); ++t) {
    const FabricTier& tier = tiers[t];
    const std::string what = "tier " + std::to_string(t + 1) + " (" + tier.name + "): ";
    const bool last = t + 1 == tiers.size();
    if (tier.gpus < (last ? 0 : 1)) found.push_back(what + "gpus: must be 1 or more (0, all, for the last tier)");
    if (t > 0 && tier.gpus != 0 && tier.gpus % tiers[t - 1].gpus != 0) {
      found.push_back(what + "gpus = " + std::to_string(tier.gpus) + ": must be a multiple of the tier inside it, " +
                      std::to_string(tiers[t - 1].gpus));
    }
    if (!(std::isfinite(tier.bytes_per_second) && tier.bytes_per_second > 0)) {
      found.push_back(what + "bytes_per_second: must be over 0");
    }
    if (!(std::isfinite(tier.latency) && tier.latency >= 0)) found.push_back(what + "latency: must be 0 or more");
  }
  return found;
}

}  // namespace ballast
