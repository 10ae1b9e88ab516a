#include "ballast/runtime/model/layer.h"

#include <ATen/ATen.h>

#include "ballast/runtime/model/rms_norm.h"
#include "ballast/runtime/model/swiglu.h"

namespace ballast {

namespace {

// x w^T, with the master weight rounded to the type that is computed in; autograd widens its gradient back.
at::Tensor project(const at::Tensor& x_TD, const at::Tensor& weight) {
  return at::linear(x_TD, weight.to(x_TD.scalar_type()));
}

// residual + x w^T in one call.
at::Tensor project_onto(const at::Tensor& residual_TD, const at::Tensor& x, const at::Tensor& weight) {
  return at::addmm(residual_TD, x, weight.to(x.scalar_type()).t());
}

}  // namespace

TransformerLayer::TransformerLayer(const ModelSpec& model, int layer, const ParameterSet& parameters)
    : model_(model), layer_(layer) {
  const std::string prefix = "layers." + std::to_string(layer) + ".";
  const auto take = [&](const char* name) { return parameters.at(prefix + name).value; };
  attention_norm_ = take("attention_norm.weight");
  wq_ = take("attention.wq");
  wk_ = take("attention.wk");
  wv_ = take("attention.wv");
  wo_ = take("attention.wo");
  mlp_norm_ = take("mlp_norm.weight");
  w_gate_ = take("mlp.w_gate");
  w_up_ = take("mlp.w_up");
  w_down_ = take("mlp.w_down");
}

at::Tensor TransformerLayer::forward(const at::Tensor& x_TD, const RotaryTable& rotary,
                                     const AttentionFunction& attention) const {
  return mlp(attend(x_TD, rotary, attention));
}

at::Tensor TransformerLayer::attend(const at::Tensor& x_TD, const RotaryTable& rotary,
                                    const AttentionFunction& attention) const {
  const std::int64_t tokens = x_TD.size(0);
  const std::int64_t dim = model_.head_dim;
  const at::Tensor normed_TD = rms_norm(x_TD, attention_norm_, model_.norm_eps);
  const at::Tensor q_THD = project(normed_TD, wq_).view({tokens, model_.num_heads, dim});
  const at::Tensor k_TKD = project(normed_TD, wk_).view({tokens, model_.num_kv_heads, dim});
  const at::Tensor v_TKD = project(normed_TD, wv_).view({tokens, model_.num_kv_heads, dim});
  const at::Tensor out_THD = attention(layer_, rotate(q_THD, rotary), rotate(k_TKD, rotary), v_TKD);
  return project_onto(x_TD, out_THD.reshape({tokens, model_.num_heads * dim}), wo_);
}

at::Tensor TransformerLayer::mlp(const at::Tensor& x_TD) const {
  const at::Tensor normed_TD = rms_norm(x_TD, mlp_norm_, model_.norm_eps);
  return project_onto(x_TD, swiglu(project(normed_TD, w_gate_), project(normed_TD, w_up_)), w_down_);
}

}  // namespace ballast
