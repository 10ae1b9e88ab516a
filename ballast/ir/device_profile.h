// What one kind of device achieves, whatever the model: rates of matrix products and of attention by shape, and of
// collectives inside a node. From published measurements, each with its source. A hardware profile of one model is
// derived from it (cost/derived_profile.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/base/units.h"
#include "ballast/ir/hardware_profile.h"

namespace ballast {

// C[m, n] = A[m, k] B[k, n].
struct GemmPoint {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  double flops_per_second = 0;
  bool operator==(const GemmPoint&) const = default;
};

// Attention of enough heads to fill the device: `queries` rows against `keys` rows each, FLOPs of the pairs that are
// attended (half the square, where causal).
struct AttentionRatePoint {
  Tokens queries = 0;
  Tokens keys = 0;  // = queries where causal
  bool causal = false;
  double forward_flops_per_second = 0;
  double backward_flops_per_second = 0;
  bool operator==(const AttentionRatePoint&) const = default;
};

// Another attention kernel than the profile's, by what it reaches where both were measured: causal, 4,096 tokens.
struct AttentionKernel {
  std::string name;  // "flash2"
  int head_dim = 0;
  double forward_flops_per_second = 0;
  double backward_flops_per_second = 0;
  bool operator==(const AttentionKernel&) const = default;
};

struct DeviceProfile {
  static constexpr int kVersion = 1;

  std::string device;                          // "H100 SXM5 80GB"
  std::string precision;                       // of all rates: "bfloat16"
  std::map<std::string, std::string> sources;  // by part: where it was published
  double peak_flops_per_second = 0;            // of the vendor, for MFU
  double memory_bytes_per_second = 0;          // achieved
  double sustained_share = 1;                  // of the measured rates that a device under steady load keeps
  Seconds kernel_seconds = 0;                  // no kernel is faster
  std::vector<GemmPoint> gemm = {};            // a grid: every m with every n and k
  std::vector<AttentionRatePoint> attention = {};
  std::vector<AttentionKernel> attention_kernels = {};
  std::vector<CollectivePoint> collectives = {};  // inside a node

  Violations violations() const;
  bool operator==(const DeviceProfile&) const = default;
};

}  // namespace ballast
