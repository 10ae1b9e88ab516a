// Learning rate by step: a linear warm-up to the peak, then half a cosine down to the lowest.
#pragma once

#include <cstdint>

#include "ballast/spec/run_spec.h"

namespace ballast {

// For the update of step `step` (from 0) of a run of training.steps. The first warm-up step is lr / warmup_steps, the
// last step is min_lr; steps past the end stay there.
double learning_rate(const TrainingSpec& training, std::int64_t step);

}  // namespace ballast
