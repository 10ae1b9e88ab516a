#include "ballast/runtime/train/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ballast {

double learning_rate(const TrainingSpec& training, std::int64_t step) {
  if (step < training.warmup_steps) {
    return training.lr * static_cast<double>(step + 1) / static_cast<double>(training.warmup_steps);
  }
  const auto falling = static_cast<double>(training.steps - 1 - training.warmup_steps);
  const double done = falling > 0 ? std::min(1.0, static_cast<double>(step - training.warmup_steps) / falling) : 1.0;
  return training.min_lr + (training.lr - training.min_lr) * 0.5 * (1.0 + std::cos(std::numbers::pi * done));
}

}  // namespace ballast
