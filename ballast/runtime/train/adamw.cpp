#include "ballast/runtime/train/adamw.h"

#include <ATen/ATen.h>

#include <cmath>

namespace ballast {

AdamW::AdamW(ParameterSet& parameters, const TrainingSpec& training)
    : parameters_(parameters),
      training_(training),
      state_{at::zeros_like(parameters.values()), at::zeros_like(parameters.values()), 0} {}

void AdamW::step(double lr, double gradient_scale) {
  // Not the kernel's own grad_scale, which is float32 whatever the parameters are.
  if (gradient_scale != 1.0) parameters_.gradients().mul_(gradient_scale);
  ++state_.updates;
  const auto update = [&](std::int64_t begin, std::int64_t end, double weight_decay) {
    if (begin == end) return;
    const auto part = [&](const at::Tensor& flat) { return std::vector<at::Tensor>{flat.slice(0, begin, end)}; };
    at::_fused_adamw_(part(parameters_.values()), part(parameters_.gradients()), part(state_.first_moment),
                      part(state_.second_moment), {},
                      std::vector<at::Tensor>{at::scalar_tensor(state_.updates, at::kFloat)}, lr, training_.beta1,
                      training_.beta2, weight_decay, training_.eps, /*amsgrad=*/false,
                      /*maximize=*/false);
  };
  const at::NoGradGuard no_grad;
  update(0, parameters_.num_decaying(), training_.weight_decay);
  update(parameters_.num_decaying(), parameters_.size(), 0.0);
}

void adamw_reference(at::Tensor value, const at::Tensor& gradient, at::Tensor first_moment, at::Tensor second_moment,
                     std::int64_t updates, double lr, double weight_decay, const TrainingSpec& training) {
  const at::NoGradGuard no_grad;
  value.mul_(1 - lr * weight_decay);
  first_moment.copy_(training.beta1 * first_moment + (1 - training.beta1) * gradient);
  second_moment.copy_(training.beta2 * second_moment + (1 - training.beta2) * gradient * gradient);
  const auto count = static_cast<double>(updates);
  const at::Tensor first = first_moment / (1 - std::pow(training.beta1, count));
  const at::Tensor second = second_moment / (1 - std::pow(training.beta2, count));
  value.sub_(lr * first / (second.sqrt() + training.eps));
}

double clip_scale(double norm, double clip_norm) { return clip_norm > 0 && norm > clip_norm ? clip_norm / norm : 1.0; }

}  // namespace ballast
