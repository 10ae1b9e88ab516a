// Root mean square normalisation (Zhang and Sennrich, 2019): y = x / sqrt(mean(x^2) + eps) * weight, over the last
// dimension. Shapes: T tokens, D hidden.
#pragma once

#include <ATen/core/Tensor.h>

namespace ballast {

// Statistics in float32 (float64 for float64); differentiable. `weight_D` may be wider than x.
at::Tensor rms_norm(const at::Tensor& x_TD, const at::Tensor& weight_D, double eps);

// The same in plain operations.
at::Tensor rms_norm_reference(const at::Tensor& x_TD, const at::Tensor& weight_D, double eps);

}  // namespace ballast
