// Whole stages: split into pipeline stages against undivided, attention by the engine against the reference.
#include "ballast/runtime/model/stage.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "ballast/spec/run_spec.h"
#include "tests/runtime/one_thread.h"

namespace ballast {
namespace {

ModelSpec small_model(bool tied) {
  return {.num_layers = 4,
          .hidden_dim = 16,
          .num_heads = 4,
          .num_kv_heads = 2,
          .head_dim = 8,
          .ffn_dim = 24,
          .vocab_size = 17,
          .tied_head = tied};
}

// One document, causal.
at::Tensor causal(int, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const auto group = q.size(1) / k.size(1);
  return at::scaled_dot_product_attention(q.transpose(0, 1), k.repeat_interleave(group, 1).transpose(0, 1),
                                          v.repeat_interleave(group, 1).transpose(0, 1), {}, 0.0, true)
      .transpose(0, 1);
}

struct Batch {
  at::Tensor tokens = at::arange(0, 12, at::kLong).remainder(7);
  at::Tensor positions = at::arange(0, 12, at::kLong);
  at::Tensor labels = at::arange(1, 13, at::kLong).remainder(7).masked_fill(at::arange(0, 12) > 10, kIgnoredLabel);
};

TEST(Stage, GivesTheSameLossAndGradientsHoweverTheLayersAreSplit) {
  const Batch batch;
  for (const bool tied : {false, true}) {
    const ModelSpec model = small_model(tied);
    const auto whole_layers = stage_layers({4});
    ParameterSet whole(model, whole_layers, Precision::float64, 3);
    const Stage stage(model, whole_layers[0], whole);
    const at::Tensor loss = stage.loss(stage.forward(batch.tokens, batch.positions, causal), batch.labels);
    torch::autograd::backward({loss}, {});

    const auto layers = stage_layers({2, 1, 1});
    ParameterSet ends(model, {layers[0], layers[2]}, Precision::float64, 3);  // virtual stages of one rank
    ParameterSet middle(model, {layers[1]}, Precision::float64, 3);
    at::Tensor x = Stage(model, layers[0], ends).forward(batch.tokens, batch.positions, causal);
    x = Stage(model, layers[1], middle).forward(x, batch.positions, causal);
    const Stage last(model, layers[2], ends);
    const at::Tensor split_loss = last.loss(last.forward(x, batch.positions, causal), batch.labels);
    torch::autograd::backward({split_loss}, {});

    EXPECT_DOUBLE_EQ(loss.item<double>(), split_loss.item<double>());
    for (const ParameterSet* part : {&ends, &middle}) {
      for (const Parameter& parameter : part->parameters()) {
        EXPECT_TRUE(at::allclose(parameter.gradient, whole.at(parameter.name).gradient, 1e-12, 1e-14))
            << parameter.name;
        EXPECT_TRUE(at::equal(parameter.value, whole.at(parameter.name).value)) << parameter.name;
      }
    }
  }
}

TEST(Stage, WithoutTokensHasZeroLossAndABackwardThatWorks) {
  const ModelSpec model = small_model(false);
  const auto layers = stage_layers({4});
  ParameterSet parameters(model, layers, Precision::float32, 3);
  const Stage stage(model, layers[0], parameters);
  int calls = 0;
  const auto nothing = [&](int, const at::Tensor& q, const at::Tensor&, const at::Tensor&) {
    ++calls;
    return q * 1;
  };
  const at::Tensor none = at::empty({0}, at::kLong);
  const at::Tensor loss = stage.loss(stage.forward(none, none, nothing), none);
  torch::autograd::backward({loss}, {});
  EXPECT_EQ(loss.item<float>(), 0.0F);
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(parameters.gradients().abs().max().item<float>(), 0.0F);
}

}  // namespace
}  // namespace ballast
