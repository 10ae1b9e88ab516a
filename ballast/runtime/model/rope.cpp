#include "ballast/runtime/model/rope.h"

#include <ATen/ATen.h>

#include <cmath>

namespace ballast {

RotaryTable rotary_table(const at::Tensor& positions_T, int head_dim, double theta, at::ScalarType type) {
  const at::Tensor exponents_F = at::arange(0, head_dim, 2, at::kDouble) / head_dim;
  const at::Tensor angles_TF = at::outer(positions_T.to(at::kDouble), at::exp(exponents_F * -std::log(theta)));
  return {angles_TF.cos().to(type), angles_TF.sin().to(type)};
}

at::Tensor rotate_reference(const at::Tensor& x_THD, const RotaryTable& table) {
  const auto halves = x_THD.to(table.cos_TF.scalar_type()).chunk(2, -1);
  const at::Tensor cos_T1F = table.cos_TF.unsqueeze(1);
  const at::Tensor sin_T1F = table.sin_TF.unsqueeze(1);
  return at::cat({halves[0] * cos_T1F - halves[1] * sin_T1F, halves[1] * cos_T1F + halves[0] * sin_T1F}, -1)
      .to(x_THD.scalar_type());
}

at::Tensor rotate(const at::Tensor& x_THD, const RotaryTable& table) { return rotate_reference(x_THD, table); }

}  // namespace ballast
