#include "ballast/runtime/model/rope.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

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

namespace {

constexpr std::int64_t kRowsPerTask = 64;

// `sense` +1 turns forwards, -1 back.
template <class T, class Wide>
void rotate_rows(const T* x, const Wide* cosines, const Wide* sines, Wide sense, T* y, std::int64_t begin,
                 std::int64_t end, std::int64_t heads, std::int64_t half) {
  for (std::int64_t row = begin; row < end; ++row) {
    const Wide* c = cosines + row * half;
    const Wide* s = sines + row * half;
    for (std::int64_t head = 0; head < heads; ++head) {
      const T* x_head = x + (row * heads + head) * 2 * half;
      T* y_head = y + (row * heads + head) * 2 * half;
      for (std::int64_t i = 0; i < half; ++i) {
        const auto a = static_cast<Wide>(x_head[i]);
        const auto b = static_cast<Wide>(x_head[half + i]);
        y_head[i] = static_cast<T>(a * c[i] - sense * b * s[i]);
        y_head[half + i] = static_cast<T>(b * c[i] + sense * a * s[i]);
      }
    }
  }
}

template <class T, class Wide>
void rotate_all(const at::Tensor& x_THD, const at::Tensor& cos_TF, const at::Tensor& sin_TF, int sense,
                const at::Tensor& y_THD) {
  at::parallel_for(0, x_THD.size(0), kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    rotate_rows(x_THD.const_data_ptr<T>(), cos_TF.const_data_ptr<Wide>(), sin_TF.const_data_ptr<Wide>(),
                static_cast<Wide>(sense), y_THD.mutable_data_ptr<T>(), begin, end, x_THD.size(1), cos_TF.size(1));
  });
}

at::Tensor rotated(const at::Tensor& x, const at::Tensor& cos_TF, const at::Tensor& sin_TF, int sense) {
  const at::Tensor x_THD = x.contiguous();
  at::Tensor y_THD = at::empty_like(x_THD);
  if (x_THD.scalar_type() == at::kDouble)
    rotate_all<double, double>(x_THD, cos_TF, sin_TF, sense, y_THD);
  else if (x_THD.scalar_type() == at::kFloat)
    rotate_all<float, float>(x_THD, cos_TF, sin_TF, sense, y_THD);
  else
    rotate_all<at::BFloat16, float>(x_THD, cos_TF, sin_TF, sense, y_THD);
  return y_THD;
}

struct Rotate : torch::autograd::Function<Rotate> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x_THD,
                            const at::Tensor& cos_TF, const at::Tensor& sin_TF) {
    context->save_for_backward({cos_TF, sin_TF});
    return rotated(x_THD, cos_TF, sin_TF, 1);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    return {rotated(gradients[0], saved[0], saved[1], -1), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor rotate(const at::Tensor& x_THD, const RotaryTable& table) {
  return Rotate::apply(x_THD, table.cos_TF, table.sin_TF);
}

}  // namespace ballast
