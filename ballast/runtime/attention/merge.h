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

// The same in place, in one pass: `into` becomes the merge of itself and `part`. into.out_QHD is float32 (float64 for
// float64) whatever the type of part's, so that many parts may be merged without rounding between; rows that have
// attended nothing so far hold any finite numbers and -infinity.
void merge_into(const AttentionOutput& into, const AttentionOutput& part);

}  // namespace ballast
