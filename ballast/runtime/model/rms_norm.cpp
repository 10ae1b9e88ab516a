#include "ballast/runtime/model/rms_norm.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace ballast {

at::Tensor rms_norm_reference(const at::Tensor& x_TD, const at::Tensor& weight_D, double eps) {
  const at::Tensor wide_TD = x_TD.to(weight_D.scalar_type());
  const at::Tensor scale_T1 = (wide_TD.square().mean(-1, /*keepdim=*/true) + eps).rsqrt();
  return (wide_TD * scale_T1 * weight_D).to(x_TD.scalar_type());
}

namespace {

// Rows a task takes; also rows that share a partial sum of the weight's gradient, so that its order of summation, and
// with it every bit, is the same for any number of threads.
constexpr std::int64_t kRowsPerTask = 256;
// Running sums kept side by side: the compiler vectorises them without being allowed to reorder a sum.
constexpr std::int64_t kLanes = 16;

// Sum over j of term(j).
template <class Wide, class Term>
Wide sum(std::int64_t count, const Term& term) {
  std::array<Wide, kLanes> lanes{};
  std::int64_t j = 0;
  for (; j + kLanes <= count; j += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[static_cast<std::size_t>(lane)] += term(j + lane);
  }
  Wide total = 0;
  for (; j < count; ++j) total += term(j);
  for (const Wide lane : lanes) total += lane;
  return total;
}

// T: type of x and y; Wide: of weight, statistics and arithmetic.
template <class T, class Wide>
void forward_rows(const T* x, const Wide* weight, T* y, Wide* scale, std::int64_t begin, std::int64_t end,
                  std::int64_t dim, double eps) {
  for (std::int64_t row = begin; row < end; ++row) {
    const T* x_row = x + row * dim;
    T* y_row = y + row * dim;
    const Wide squares = sum<Wide>(dim, [&](std::int64_t j) {
      const auto value = static_cast<Wide>(x_row[j]);
      return value * value;
    });
    const Wide s = Wide(1) / std::sqrt(squares / static_cast<Wide>(dim) + static_cast<Wide>(eps));
    scale[row] = s;
    for (std::int64_t j = 0; j < dim; ++j) y_row[j] = static_cast<T>(static_cast<Wide>(x_row[j]) * s * weight[j]);
  }
}

// dx = s (w dy - x s^2 mean(w dy x)); adds dy x s to dweight.
template <class T, class Wide>
void backward_rows(const T* dy, const T* x, const Wide* weight, const Wide* scale, T* dx, Wide* dweight,
                   std::int64_t begin, std::int64_t end, std::int64_t dim) {
  for (std::int64_t row = begin; row < end; ++row) {
    const T* dy_row = dy + row * dim;
    const T* x_row = x + row * dim;
    T* dx_row = dx + row * dim;
    const Wide s = scale[row];
    const Wide dot = sum<Wide>(
        dim, [&](std::int64_t j) { return static_cast<Wide>(dy_row[j]) * weight[j] * static_cast<Wide>(x_row[j]); });
    const Wide along = dot / static_cast<Wide>(dim) * s * s;
    for (std::int64_t j = 0; j < dim; ++j) {
      const auto dy_j = static_cast<Wide>(dy_row[j]);
      const auto x_j = static_cast<Wide>(x_row[j]);
      dx_row[j] = static_cast<T>(s * (weight[j] * dy_j - x_j * along));
      dweight[j] += dy_j * x_j * s;
    }
  }
}

template <class Body>
void for_types(at::ScalarType type, const Body& body) {
  if (type == at::kDouble)
    body(double{}, double{});
  else if (type == at::kFloat)
    body(float{}, float{});
  else
    body(at::BFloat16{}, float{});
}

struct RmsNorm : torch::autograd::Function<RmsNorm> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight_D,
                            double eps) {
    const at::Tensor x_TD = x.contiguous();
    const std::int64_t dim = x_TD.size(-1);
    const std::int64_t rows = x_TD.size(0);
    at::Tensor y_TD = at::empty_like(x_TD);
    at::Tensor scale_T = at::empty({rows}, weight_D.options());
    for_types(x_TD.scalar_type(), [&](auto narrow, auto wide) {
      using T = decltype(narrow);
      using Wide = decltype(wide);
      at::parallel_for(0, rows, kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
        forward_rows(x_TD.const_data_ptr<T>(), weight_D.const_data_ptr<Wide>(), y_TD.mutable_data_ptr<T>(),
                     scale_T.mutable_data_ptr<Wide>(), begin, end, dim, eps);
      });
    });
    context->save_for_backward({x_TD, weight_D, scale_T});
    return y_TD;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x_TD = saved[0], &weight_D = saved[1], &scale_T = saved[2];
    const at::Tensor dy_TD = gradients[0].contiguous();
    const std::int64_t dim = x_TD.size(-1);
    const std::int64_t rows = x_TD.size(0);
    const std::int64_t tasks = (rows + kRowsPerTask - 1) / kRowsPerTask;
    at::Tensor dx_TD = at::empty_like(x_TD);
    at::Tensor partial_SD = at::zeros({tasks, dim}, scale_T.options());
    for_types(x_TD.scalar_type(), [&](auto narrow, auto wide) {
      using T = decltype(narrow);
      using Wide = decltype(wide);
      at::parallel_for(0, tasks, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t task = first; task < last; ++task) {
          const std::int64_t begin = task * kRowsPerTask;
          backward_rows(dy_TD.const_data_ptr<T>(), x_TD.const_data_ptr<T>(), weight_D.const_data_ptr<Wide>(),
                        scale_T.const_data_ptr<Wide>(), dx_TD.mutable_data_ptr<T>(),
                        partial_SD.mutable_data_ptr<Wide>() + task * dim, begin, std::min(rows, begin + kRowsPerTask),
                        dim);
        }
      });
    });
    return {dx_TD, partial_SD.sum(0), at::Tensor()};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x_TD, const at::Tensor& weight_D, double eps) {
  return RmsNorm::apply(x_TD, weight_D, eps);
}

}  // namespace ballast
