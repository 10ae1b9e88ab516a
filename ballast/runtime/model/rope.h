// Rotary positions (Su et al., 2021) in the half-split form: dimension i of the first half turns with dimension i of
// the second by position * theta^(-2i/D). Shapes: T tokens, H heads, D head dimension, F = D/2 frequencies.
#pragma once

#include <ATen/core/Tensor.h>

namespace ballast {

// Made once for a micro-batch, used by every layer.
struct RotaryTable {
  at::Tensor cos_TF;
  at::Tensor sin_TF;
};

// positions_T: int64, inside each token's document. Angles are computed in float64 and stored as `type`.
RotaryTable rotary_table(const at::Tensor& positions_T, int head_dim, double theta, at::ScalarType type);

// Differentiable in x_THD; the table's type may be wider than x's.
at::Tensor rotate(const at::Tensor& x_THD, const RotaryTable& table);

// The same in plain operations.
at::Tensor rotate_reference(const at::Tensor& x_THD, const RotaryTable& table);

}  // namespace ballast
