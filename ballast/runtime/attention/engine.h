// Executes a ShardPlan on one context parallel rank (requirement L4): all-gather of keys and values, attention of the
// local queries block by block, and a reduce-scatter of the gradients of keys and values in backward. Any plan, any
// degree; a rank that holds no token still joins both collectives.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "ballast/ir/shard_plan.h"
#include "ballast/runtime/comm/communicator.h"
#include "ballast/runtime/profiler/span_recorder.h"

namespace ballast {

// Attention of one micro-batch in one stage; made once, used by every layer, differentiated by autograd. Used by the
// rank's own thread. Forward and backward of the cp ranks must run in the same order of layers.
class ContextAttention {
 public:
  // `cp` and `recorder` must outlive every backward through this. REQUIRES: plan.violations() is empty and the plan is
  // for cp.size() ranks.
  ContextAttention(const ShardPlan& plan, Communicator& cp, SpanRecorder& recorder, int stage, int micro_batch);

  // Local tokens in the plan's local order: q_THD, k_TKD, v_TKD -> out_THD. `layer` labels the spans.
  at::Tensor operator()(int layer, const at::Tensor& q_THD, const at::Tensor& k_TKD, const at::Tensor& v_TKD) const;

  struct Plan;  // what all layers share: blocks, index maps, where to record

 private:
  std::shared_ptr<const Plan> plan_;
};

}  // namespace ballast
