#include "ballast/ir/device_profile.h"

#include <cmath>
#include <set>

namespace ballast {

Violations DeviceProfile::violations() const {
  Violations found;
  const auto positive = [&](const std::string& what, double value) {
    if (!(std::isfinite(value) && value > 0)) found.push_back(what + " must be over 0");
  };
  if (device.empty()) found.push_back("device is empty");
  if (precision.empty()) found.push_back("precision is empty");
  positive("peak_flops_per_second", peak_flops_per_second);
  positive("memory_bytes_per_second", memory_bytes_per_second);
  if (!(sustained_share > 0 && sustained_share <= 1)) found.push_back("sustained_share must be over 0 and at most 1");
  if (!(kernel_seconds >= 0)) found.push_back("kernel_seconds must be 0 or more");
  std::set<std::int64_t> m, n, k;
  for (const GemmPoint& point : gemm) {
    const std::string what =
        "gemm " + std::to_string(point.m) + " x " + std::to_string(point.n) + " x " + std::to_string(point.k);
    if (point.m < 1 || point.n < 1 || point.k < 1) found.push_back(what + ": sizes must be 1 or more");
    positive(what + ": flops_per_second", point.flops_per_second);
    m.insert(point.m);
    n.insert(point.n);
    k.insert(point.k);
  }
  if (gemm.empty() || gemm.size() != m.size() * n.size() * k.size()) {
    found.push_back("gemm must be a grid: " + std::to_string(m.size()) + " x " + std::to_string(n.size()) + " x " +
                    std::to_string(k.size()) + " sizes need " + std::to_string(m.size() * n.size() * k.size()) +
                    " points, not " + std::to_string(gemm.size()));
  }
  for (const AttentionRatePoint& point : attention) {
    const std::string what = "attention (" + std::to_string(point.queries) + ", " + std::to_string(point.keys) + ")";
    if (point.queries < 1 || point.keys < 1) found.push_back(what + ": queries and keys must be 1 or more");
    positive(what + ": forward rate", point.forward_flops_per_second);
    positive(what + ": backward rate", point.backward_flops_per_second);
  }
  if (attention.empty()) found.push_back("no attention point");
  return found;
}

}  // namespace ballast
