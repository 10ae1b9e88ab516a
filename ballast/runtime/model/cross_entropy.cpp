#include "ballast/runtime/model/cross_entropy.h"

#include <ATen/ATen.h>

namespace ballast {

at::Tensor linear_cross_entropy_reference(const at::Tensor& x_TD, const at::Tensor& weight_VD,
                                          const at::Tensor& labels_T) {
  const at::Tensor logits_TV = at::linear(x_TD, weight_VD);
  const auto wide = x_TD.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor logs_TV = logits_TV.to(wide).log_softmax(-1);
  const at::Tensor counts_T = labels_T != kIgnoredLabel;
  const at::Tensor picked_T = logs_TV.gather(1, labels_T.clamp_min(0).unsqueeze(1)).squeeze(1);
  return -at::where(counts_T, picked_T, at::zeros_like(picked_T)).sum();
}

at::Tensor linear_cross_entropy(const at::Tensor& x_TD, const at::Tensor& weight_VD, const at::Tensor& labels_T) {
  return linear_cross_entropy_reference(x_TD, weight_VD, labels_T);
}

}  // namespace ballast
