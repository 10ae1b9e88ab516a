// One block of attention work on this device, through PyTorch's flash attention kernel for the CPU (float64, float32
// and bfloat16). That kernel aligns a causal mask to the top left and dies on empty tensors, so this file is the only
// one that calls it: a block whose keys begin before its queries is attended in two parts, merged by log-sum-exp.
//
// Shapes: Q query rows of the block, T key rows of it (T >= Q; the last key belongs to the last query), H query heads,
// K key heads, D head dimension. Rows may be strided; D is contiguous.
#pragma once

#include <ATen/core/Tensor.h>

#include "ballast/runtime/attention/merge.h"

namespace ballast {

// One part of a block: every query sees every key or, if `causal`, query i the keys [0, i]. REQUIRES: Q, T >= 1.
AttentionOutput attend_part(const at::Tensor& q_QHD, const at::Tensor& k_TKD, const at::Tensor& v_TKD, bool causal);

// REQUIRES: 1 <= Q <= T. Query i sees keys [0, T - Q + i].
AttentionOutput attend_block(const at::Tensor& q_QHD, const at::Tensor& k_TKD, const at::Tensor& v_TKD);

struct AttentionGradients {
  at::Tensor dq_QHD;
  at::Tensor dk_TKD;
  at::Tensor dv_TKD;
};

// Gradients of a part, given the gradient of the whole block's output and that output; adds into `into` as below.
void attend_part_backward(const at::Tensor& dout_QHD, const at::Tensor& q_QHD, const at::Tensor& k_TKD,
                          const at::Tensor& v_TKD, const AttentionOutput& output, bool causal,
                          const AttentionGradients& into);

// Gradients of a block, given the gradient of its output and what attend_block returned. Adds into `into`, whose
// tensors are views of the rows of q, k and v; their type may be wider than the kernel's.
void attend_block_backward(const at::Tensor& dout_QHD, const at::Tensor& q_QHD, const at::Tensor& k_TKD,
                           const at::Tensor& v_TKD, const AttentionOutput& output, const AttentionGradients& into);

}  // namespace ballast
