#include "ballast/runtime/model/stage.h"

#include <ATen/ATen.h>

#include "ballast/runtime/model/rms_norm.h"

namespace ballast {

Stage::Stage(const ModelSpec& model, const StageLayers& layers, const ParameterSet& parameters)
    : model_(model), layers_(layers), precision_(parameters.precision()) {
  for (int layer = layers.first_layer; layer < layers.first_layer + layers.num_layers; ++layer) {
    stack_.emplace_back(model, layer, parameters);
  }
  if (layers.is_first) embedding_ = parameters.at("embedding.weight").value;
  if (layers.is_last) {
    final_norm_ = parameters.at("final_norm.weight").value;
    head_ = parameters.at(model.tied_head ? "embedding.weight" : "head.weight").value;
  }
}

at::Tensor Stage::forward(const at::Tensor& input, const at::Tensor& positions_T,
                          const AttentionFunction& attention) const {
  const auto type = compute_type(precision_);
  const auto wide = type == at::kDouble ? at::kDouble : at::kFloat;
  const RotaryTable rotary = rotary_table(positions_T, model_.head_dim, model_.rope_theta, wide);
  at::Tensor x_TD = layers_.is_first ? at::embedding(embedding_, input).to(type) : input;
  for (const TransformerLayer& layer : stack_) x_TD = layer.forward(x_TD, rotary, attention);
  return x_TD;
}

at::Tensor Stage::loss(const at::Tensor& hidden_TD, const at::Tensor& labels_T) const {
  const at::Tensor normed_TD = rms_norm(hidden_TD, final_norm_, model_.norm_eps);
  return linear_cross_entropy(normed_TD, head_.to(hidden_TD.scalar_type()), labels_T);
}

at::Tensor Stage::logits(const at::Tensor& hidden_TD) const {
  return at::linear(rms_norm(hidden_TD, final_norm_, model_.norm_eps), head_.to(hidden_TD.scalar_type()));
}

}  // namespace ballast
