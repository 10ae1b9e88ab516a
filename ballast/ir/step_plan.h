// Everything the executor needs to run one training step, and all that the simulator needs to predict it. It holds no
// tensor, no process group and no policy: why it was chosen is not in it.
#pragma once

#include <cstdint>
#include <vector>

#include "ballast/ir/packed_step.h"
#include "ballast/ir/schedule.h"
#include "ballast/ir/shard_plan.h"
#include "ballast/spec/parallel_dims.h"

namespace ballast {

struct StepPlan {
  static constexpr int kVersion = 1;

  std::int64_t step = 0;
  ParallelDims dims;
  std::vector<int> stage_layers;                       // layers of each of the P * V stages
  std::vector<std::vector<MicroBatch>> micro_batches;  // [dp rank][micro-batch of that pipeline]
  std::vector<std::vector<ShardPlan>> shard_plans;     // same shape: over the cp axis
  Schedule schedule;                                   // lowered (with sends), the same for every pipeline

  // All micro-batches, pipeline after pipeline.
  PackedStep packed() const;
  Tokens num_tokens() const;
  Tokens num_labels() const;  // the divisor of the loss, over all ranks
  // Equal on every rank, or the run stops before it exchanges anything.
  std::uint64_t digest() const;
  Violations violations() const;
  bool operator==(const StepPlan&) const = default;
};

}  // namespace ballast
