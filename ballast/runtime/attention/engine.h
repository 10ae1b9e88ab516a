// Executes a ShardPlan on one context parallel rank, differentiated by autograd: tokens move from linear to attention
// order, keys reach queries as the plan says (core.h), and the outputs move back (requirements L4, Z4, Z6). Any plan,
// any degree; a rank that holds no token still takes its part.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "ballast/ir/shard_plan.h"
#include "ballast/runtime/attention/core.h"

namespace ballast {

// Attention of one micro-batch in one stage; made once, used by every layer. Used by the rank's own thread. Forward and
// backward of the cp ranks must run in the same order of layers.
class ContextAttention {
 public:
  // What the context names must outlive every backward through this. REQUIRES: plan.violations() is empty and the plan
  // is for cp.size() ranks.
  ContextAttention(const ShardPlan& plan, const AttentionContext& context);

  // Local tokens in linear order: q_THD, k_TKD, v_TKD -> out_THD. `layer` labels the spans.
  at::Tensor operator()(int layer, const at::Tensor& q_THD, const at::Tensor& k_TKD, const at::Tensor& v_TKD) const;

  struct Shared;  // what all layers share

 private:
  std::shared_ptr<const Shared> shared_;
};

}  // namespace ballast
