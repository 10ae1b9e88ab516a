#include "ballast/spec/cluster_spec.h"

#include <cmath>

namespace ballast {

double FabricTier::available_bytes_per_second(double bytes) const {
  const double whole = bytes_per_second * (1 - other_tenants_share);
  if (share_by_bytes.empty()) return whole;
  std::size_t above = 0;
  while (above < share_by_bytes.size() && share_by_bytes[above][0] < bytes) ++above;
  if (above == 0) return whole * share_by_bytes.front()[1];
  if (above == share_by_bytes.size()) return whole * share_by_bytes.back()[1];
  const std::vector<double>& low = share_by_bytes[above - 1];
  const std::vector<double>& high = share_by_bytes[above];
  const double at = (std::log(bytes) - std::log(low[0])) / (std::log(high[0]) - std::log(low[0]));
  return whole * (low[1] + at * (high[1] - low[1]));
}

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
    if (!(tier.other_tenants_share >= 0 && tier.other_tenants_share < 1)) {
      found.push_back(what + "other_tenants_share: must be 0 or more, below 1");
    }
    for (std::size_t i = 0; i < tier.share_by_bytes.size(); ++i) {
      const std::vector<double>& point = tier.share_by_bytes[i];
      const bool good = point.size() == 2 && point[0] > 0 && point[1] > 0 && point[1] <= 1;
      if (!good || (i > 0 && !(point[0] > tier.share_by_bytes[i - 1][0]))) {
        found.push_back(what + "share_by_bytes: entry " + std::to_string(i + 1) +
                        " must be [bytes, share], bytes rising, a share over 0 and at most 1");
        break;
      }
    }
    if (!(std::isfinite(tier.latency) && tier.latency >= 0)) found.push_back(what + "latency: must be 0 or more");
  }
  return found;
}

}  // namespace ballast
