// One transformer layer: x + attention(norm(x)), then x + mlp(norm(x)). It sees the tokens that it is given and knows
// nothing of ranks: how queries reach keys is the caller's function.
// Shapes: T tokens, D hidden, H query heads, K key and value heads.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>

#include "ballast/runtime/model/parameters.h"
#include "ballast/runtime/model/rope.h"
#include "ballast/spec/model_spec.h"

namespace ballast {

// (layer, q_THD, k_TKD, v_TKD) -> out_THD, differentiable. Such as ContextAttention.
using AttentionFunction =
    std::function<at::Tensor(int layer, const at::Tensor& q_THD, const at::Tensor& k_TKD, const at::Tensor& v_TKD)>;

class TransformerLayer {
 public:
  // Shares the parameters' storage with `parameters`, which must hold this layer.
  TransformerLayer(const ModelSpec& model, int layer, const ParameterSet& parameters);

  at::Tensor forward(const at::Tensor& x_TD, const RotaryTable& rotary, const AttentionFunction& attention) const;

 private:
  at::Tensor attend(const at::Tensor& x_TD, const RotaryTable& rotary, const AttentionFunction& attention) const;
  at::Tensor mlp(const at::Tensor& x_TD) const;

  ModelSpec model_;
  int layer_;
  at::Tensor attention_norm_, wq_, wk_, wv_, wo_;
  at::Tensor mlp_norm_, w_gate_, w_up_, w_down_;
};

}  // namespace ballast
