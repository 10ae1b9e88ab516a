// AdamW (Loshchilov and Hutter, 2019) on the flat buffers of a ParameterSet: two fused calls a step, one for what
// decays and one for what doesn't.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "ballast/runtime/model/parameters.h"
#include "ballast/spec/run_spec.h"

namespace ballast {

// All that a checkpoint must hold of the optimizer. The moments have the layout and type of the flat values.
struct AdamWState {
  at::Tensor first_moment;
  at::Tensor second_moment;
  std::int64_t updates = 0;  // how often step() ran
};

class AdamW {
 public:
  // `parameters` must outlive the optimizer.
  AdamW(ParameterSet& parameters, const TrainingSpec& training);

  // One update from the flat gradients, each multiplied by `gradient_scale` first (see clip_scale); the gradients are
  // left as they are where it is 1. Learning rate `lr` as from learning_rate().
  void step(double lr, double gradient_scale);

  AdamWState& state() { return state_; }
  const AdamWState& state() const { return state_; }

 private:
  ParameterSet& parameters_;
  TrainingSpec training_;
  AdamWState state_;
};

// The same update of one tensor in plain operations; the fused one is checked against it. `updates` counts this one.
void adamw_reference(at::Tensor value, const at::Tensor& gradient, at::Tensor first_moment, at::Tensor second_moment,
                     std::int64_t updates, double lr, double weight_decay, const TrainingSpec& training);

// What to multiply gradients with so that their global norm is at most `clip_norm` (0: no clipping).
double clip_scale(double norm, double clip_norm);

}  // namespace ballast
