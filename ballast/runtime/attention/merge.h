// Joins attention over two disjoint sets of keys into attention over both, by their log-sum-exps.
#pragma once

#include <ATen/core/Tensor.h>

namespace ballast {

// Attention of some queries over some keys. `out` rows are tokens; `lse` is the natural log of the softmax's
// denominator, float32 (float64 for float64 tensors).
struct AttentionOutput {
  at::Tensor out_QHD;
  at::Tensor lse_HQ;
};

// The merge itself is computed in the log-sum-exp's type and rounded once to the outputs' type.
AttentionOutput merge(const AttentionOutput& a, const AttentionOutput& b);

}  // namespace ballast
