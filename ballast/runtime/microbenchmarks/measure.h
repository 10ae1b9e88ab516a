// Measures a hardware profile: what this machine does with the model code that training runs, in the same precision,
// with the same threads and the same allocator settings (requirement W6).
#pragma once

#include <functional>
#include <string>

#include "ballast/ir/hardware_profile.h"
#include "ballast/spec/model_spec.h"
#include "ballast/spec/run_spec.h"

namespace ballast {

struct MeasureOptions {
  ModelSpec model;
  Precision precision = Precision::float32;
  int threads = 1;                  // compute threads of a rank; becomes the process's setting
  Tokens longest_document = 16384;  // largest attention block; longer ones are extrapolated by whoever uses the profile
  Tokens most_tokens = 32768;       // largest token count of linear parts
  Seconds slowest_point = 2.0;      // a point expected to take longer is left out, but for the smallest of its kind
  std::vector<int> collective_ranks = {2, 4};
  Bytes most_collective_bytes = 32 << 20;
};

// Told before each point: "attention 512 x 4096", and the share of points done, 0 to 1.
using MeasureProgress = std::function<void(const std::string& what, double share_done)>;

// Takes about a minute for a small model. `measured_by` of the result is left for the caller, who knows the command.
HardwareProfile measure_profile(const MeasureOptions& options, const MeasureProgress& progress = {});

// The parts of it; collectives are measured by runtime/comm/collective_benchmark.h.
std::vector<AttentionPoint> measure_attention(const MeasureOptions& options, const MeasureProgress& progress = {});
Seconds measure_block_overhead(const MeasureOptions& options);
std::vector<LinearPoint> measure_linear(const MeasureOptions& options, const MeasureProgress& progress = {});
Seconds measure_optimizer(const MeasureOptions& options);  // a parameter

}  // namespace ballast
