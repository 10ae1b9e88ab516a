// The parts that are linear in tokens: one layer without its attention, the embedding, and the head with its loss, each
// by the classes that training runs; and the reordering of gathered keys and values.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <functional>

#include "ballast/runtime/microbenchmarks/measure.h"
#include "ballast/runtime/microbenchmarks/timing.h"
#include "ballast/runtime/model/stage.h"
#include "ballast/runtime/train/adamw.h"

namespace ballast {

namespace {

// In place of attention: the queries pass through and every input gets a gradient, at no cost.
struct NoAttention : torch::autograd::Function<NoAttention> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v) {
    context->save_for_backward({k, v});
    return q.detach();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    return {gradients[0], saved[0], saved[1]};
  }
};

// One layer stands for all: they are alike, and a large model's would not fit.
ModelSpec one_layer(ModelSpec model) {
  model.num_layers = 1;
  return model;
}

TwoTimes time_graph(const std::function<at::Tensor()>& forward) {
  at::Tensor out, dout;
  return time_both(
      [&] {
        out = at::Tensor();  // the graph before is freed here, as in training
        out = forward();
      },
      [&] {
        if (!dout.defined()) dout = at::ones_like(out);
        torch::autograd::backward({out}, {dout});
      });
}

// Keys and values gathered from ranks that hold every second row, into packed order; and the gradients back, which are
// wider.
LinearPoint measure_reorder(const MeasureOptions& options, Tokens tokens) {
  const auto type = compute_type(options.precision);
  const at::Tensor gathered = at::randn({tokens, 2, options.model.num_kv_heads, options.model.head_dim}, at::kFloat);
  const at::Tensor kv = gathered.to(type);
  const at::Tensor dkv = gathered.to(type == at::kDouble ? at::kDouble : at::kFloat);
  const at::Tensor order = at::cat({at::arange(0, tokens, 2, at::kLong), at::arange(1, tokens, 2, at::kLong)});
  at::Tensor reordered;
  const TwoTimes times =
      time_both([&] { reordered = kv.index_select(0, order); }, [&] { reordered = dkv.index_select(0, order); });
  return {"reorder", tokens, times.first, times.second};
}

}  // namespace

std::vector<LinearPoint> measure_linear(const MeasureOptions& options, const MeasureProgress& progress) {
  const ModelSpec model = one_layer(options.model);
  const ParameterSet parameters(model, stage_layers({1}), options.precision, 1);
  const TransformerLayer layer(model, 0, parameters);
  const Stage embedding(model, {0, 0, true, false}, parameters);
  const Stage head(model, {1, 0, false, true}, parameters);
  const AttentionFunction no_attention = [](int, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    return NoAttention::apply(q, k, v);
  };
  const auto type = compute_type(options.precision);
  const auto wide = type == at::kDouble ? at::kDouble : at::kFloat;

  std::vector<LinearPoint> points;
  Seconds last = 0;
  for (Tokens tokens = 8; tokens <= options.most_tokens; tokens *= 4) {
    if (4 * last > options.slowest_point) break;
    const auto say = [&](const char* part) {
      const double share = std::log2(static_cast<double>(tokens)) / std::log2(static_cast<double>(options.most_tokens));
      if (progress) progress(part + (" of " + std::to_string(tokens)) + " tokens", share * 0.99);
    };
    const at::Tensor positions = at::arange(tokens, at::kLong);
    const at::Tensor ids = positions.remainder(model.vocab_size);
    const at::Tensor x = at::randn({tokens, model.hidden_dim}, at::kFloat).to(type).requires_grad_();
    const RotaryTable rotary = rotary_table(positions, model.head_dim, model.rope_theta, wide);
    say("layer");
    const TwoTimes of_layer = time_graph([&] {
      x.mutable_grad() = at::Tensor();
      return layer.forward(x, rotary, no_attention);
    });
    say("embedding");
    const TwoTimes of_embedding = time_graph([&] { return embedding.forward(ids, positions, no_attention); });
    say("head");
    const TwoTimes of_head = time_graph([&] {
      x.mutable_grad() = at::Tensor();
      return head.loss(x, ids);
    });
    points.push_back({"layer", tokens, of_layer.first, of_layer.second});
    points.push_back({"embedding", tokens, of_embedding.first, of_embedding.second});
    points.push_back({"head", tokens, of_head.first, of_head.second});
    points.push_back(measure_reorder(options, tokens));
    last = of_layer.first + of_layer.second;
  }
  return points;
}

Seconds measure_optimizer(const MeasureOptions& options) {
  ParameterSet parameters(one_layer(options.model), stage_layers({1}), options.precision, 1);
  const TrainingSpec training;
  AdamW optimizer(parameters, training);
  const Seconds seconds = time_one([&] {
    parameters.zero_gradients();
    const double norm = parameters.squared_gradient_norm();
    optimizer.step(training.lr, clip_scale(norm + 4.0, 1.0));
  });
  return seconds / static_cast<double>(parameters.size());
}

}  // namespace ballast
