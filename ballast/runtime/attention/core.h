// Attention of one layer on one context parallel rank, in attention order: how the keys of other ranks reach this
// rank's queries. One implementation a KvExchange; engine.h puts token moves and autograd around it. Shapes: T local
// tokens, H query heads, K key heads, D head dimension.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <memory>

#include "ballast/ir/shard_plan.h"
#include "ballast/runtime/comm/communicator.h"
#include "ballast/runtime/profiler/pace.h"
#include "ballast/runtime/profiler/span_recorder.h"

namespace ballast {

// What the attention of one micro-batch in one stage works with. All outlive it.
struct AttentionContext {
  Communicator& cp;
  SpanRecorder& recorder;
  Pace& pace;
  int stage = 0;
  int micro_batch = 0;

  Span span(SpanKind kind, int layer, Bytes bytes) const {
    return {.kind = kind, .stage = stage, .micro_batch = micro_batch, .layer = layer, .bytes = bytes, .axis = Axis::cp};
  }
};

// What backward needs of forward.
struct AttentionState {
  at::Tensor q_THD;
  at::Tensor kv;  // the core's own: keys and values, local or gathered
  at::Tensor out_THD;
  at::Tensor lse_HT;  // float32, float64 for float64
};

class AttentionCore {
 public:
  virtual ~AttentionCore() = default;
  // All cp ranks call both in the same order. Tensors may have no token.
  virtual AttentionState forward(int layer, const at::Tensor& q_THD, const at::Tensor& k_TKD,
                                 const at::Tensor& v_TKD) const = 0;
  // The gradients of q, k and v, in their type. dout_THD is contiguous.
  virtual std::array<at::Tensor, 3> backward(int layer, const AttentionState& state,
                                             const at::Tensor& dout_THD) const = 0;
};

// REQUIRES: plan.violations() is empty and the plan is for cp.size() ranks.
std::unique_ptr<AttentionCore> make_gather_core(const ShardPlan& plan, const AttentionContext& context);
std::unique_ptr<AttentionCore> make_ring_core(const ShardPlan& plan, const AttentionContext& context);

}  // namespace ballast
