#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "ballast/runtime/train/adamw.h"
#include "ballast/runtime/train/lr_schedule.h"

namespace ballast {
namespace {

const ModelSpec kModel{.num_layers = 1,
                       .hidden_dim = 8,
                       .num_heads = 2,
                       .num_kv_heads = 1,
                       .head_dim = 4,
                       .ffn_dim = 12,
                       .vocab_size = 11};

TEST(AdamW, EqualsTheReferenceAndDecaysMatricesOnly) {
  const TrainingSpec training{.weight_decay = 0.3};
  ParameterSet parameters(kModel, stage_layers({1}), Precision::float64, 7);
  AdamW optimizer(parameters, training);
  struct Expected {
    at::Tensor value, first, second;
  };
  std::vector<Expected> expected;
  for (const Parameter& p : parameters.parameters()) {
    expected.push_back({p.value.detach().clone(), at::zeros_like(p.value), at::zeros_like(p.value)});
  }
  at::Generator generator = at::detail::createCPUGenerator(2);
  for (int step = 1; step <= 5; ++step) {
    parameters.gradients().copy_(at::randn({parameters.size()}, generator, at::kDouble));
    const double lr = 0.01 * step;
    std::size_t i = 0;
    for (const Parameter& p : parameters.parameters()) {
      auto& [value, first, second] = expected[i++];
      const bool norm = p.name.ends_with("norm.weight");
      adamw_reference(value, 0.5 * p.gradient, first, second, step, lr, norm ? 0.0 : 0.3, training);
    }
    optimizer.step(lr, 0.5);
  }
  std::size_t i = 0;
  for (const Parameter& p : parameters.parameters()) {
    EXPECT_TRUE(at::allclose(p.value, expected[i++].value, 1e-12, 1e-14)) << p.name;
  }
  EXPECT_EQ(optimizer.state().updates, 5);
}

TEST(ClipScale, LeavesShortGradientsAloneAndBringsLongOnesToTheNorm) {
  EXPECT_EQ(clip_scale(0.5, 1.0), 1.0);
  EXPECT_EQ(clip_scale(0.0, 1.0), 1.0);
  EXPECT_DOUBLE_EQ(clip_scale(4.0, 1.0), 0.25);
  EXPECT_EQ(clip_scale(4.0, 0.0), 1.0) << "0 means no clipping";
}

TEST(LearningRate, WarmsUpThenFallsToTheLowest) {
  const TrainingSpec training{.steps = 10, .lr = 1.0, .min_lr = 0.1, .warmup_steps = 4};
  EXPECT_DOUBLE_EQ(learning_rate(training, 0), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(training, 3), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(training, 4), 1.0);
  for (int step = 5; step < 10; ++step) EXPECT_LT(learning_rate(training, step), learning_rate(training, step - 1));
  EXPECT_DOUBLE_EQ(learning_rate(training, 9), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(training, 50), 0.1);
}

TEST(LearningRate, IsFiniteForRunsShorterThanTheirWarmUp) {
  const TrainingSpec training{.steps = 1, .lr = 1.0, .min_lr = 0.1, .warmup_steps = 0};
  EXPECT_DOUBLE_EQ(learning_rate(training, 0), 0.1);
  const TrainingSpec longer{.steps = 2, .lr = 1.0, .min_lr = 0.1, .warmup_steps = 5};
  EXPECT_DOUBLE_EQ(learning_rate(longer, 1), 0.4);
}

}  // namespace
}  // namespace ballast
