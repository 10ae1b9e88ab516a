// Attention with a document mask over a whole packed sequence, slow and clear: the measure of every faster path.
// Shapes: T tokens, H query heads, K key and value heads (H a multiple of K), D head dimension.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "ballast/base/units.h"

namespace ballast {

// q_THD, k_TKD, v_TKD -> out_THD. A query sees the keys of its own document up to itself. Softmax in the tensors' type;
// plain operations, so autograd differentiates it. cu_seqlens as in ShardPlan; documents may be empty.
at::Tensor reference_attention(const at::Tensor& q_THD, const at::Tensor& k_TKD, const at::Tensor& v_TKD,
                               const std::vector<Tokens>& cu_seqlens);

}  // namespace ballast
