// The head and its loss together: logits = x weight^T, then the SUM over tokens of the cross entropy against their
// labels. A sum, not a mean, because the divisor is the number of labels of all ranks.
// Shapes: T tokens, D hidden, V vocabulary.
#pragma once

#include <ATen/core/Tensor.h>

namespace ballast {

// No loss and no gradient for a token with this label.
constexpr std::int64_t kIgnoredLabel = -100;

// labels_T: int64 in [0, V) or kIgnoredLabel. A scalar in float32 (float64 for float64), 0 where no label counts;
// differentiable in x and weight.
at::Tensor linear_cross_entropy(const at::Tensor& x_TD, const at::Tensor& weight_VD, const at::Tensor& labels_T);

// The same in plain operations, with the logits of all tokens in memory at once.
at::Tensor linear_cross_entropy_reference(const at::Tensor& x_TD, const at::Tensor& weight_VD,
                                          const at::Tensor& labels_T);

}  // namespace ballast
