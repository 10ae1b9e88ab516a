#include "ballast/runtime/model/rms_norm.h"

#include <ATen/ATen.h>

namespace ballast {

at::Tensor rms_norm_reference(const at::Tensor& x_TD, const at::Tensor& weight_D, double eps) {
  const at::Tensor wide_TD = x_TD.to(weight_D.scalar_type());
  const at::Tensor scale_T1 = (wide_TD.square().mean(-1, /*keepdim=*/true) + eps).rsqrt();
  return (wide_TD * scale_T1 * weight_D).to(x_TD.scalar_type());
}

at::Tensor rms_norm(const at::Tensor& x_TD, const at::Tensor& weight_D, double eps) {
  return rms_norm_reference(x_TD, weight_D, eps);
}

}  // namespace ballast
