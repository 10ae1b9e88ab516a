#include "ballast/runtime/model/parameters.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "ballast/base/digest.h"
#include "ballast/base/error.h"
#include "ballast/base/random.h"

namespace ballast {

namespace {

struct Shape {
  std::string name;
  std::vector<std::int64_t> sizes;
  double deviation = 0;  // of its first values; 0: a norm's weight, all ones
  bool tied = false;
  bool owned = true;
};

// GPT-2's initialisation: 0.02, less on the projections that write to the residual stream, by the root of how many do.
std::vector<Shape> shapes(const ModelSpec& model, const std::vector<StageLayers>& stages) {
  const std::int64_t hidden = model.hidden_dim;
  const std::int64_t queries = static_cast<std::int64_t>(model.num_heads) * model.head_dim;
  const std::int64_t keys = static_cast<std::int64_t>(model.num_kv_heads) * model.head_dim;
  const std::int64_t ffn = model.ffn_dim;
  const double deviation = 0.02;
  const double residual = deviation / std::sqrt(2.0 * model.num_layers);
  const auto any = [&](bool StageLayers::*flag) { return std::ranges::any_of(stages, flag); };
  const bool has_first = any(&StageLayers::is_first);
  const bool has_last = any(&StageLayers::is_last);
  const bool shares = model.tied_head && !(has_first && has_last);

  std::vector<Shape> all;
  if (has_first || (has_last && model.tied_head)) {
    all.push_back({"embedding.weight", {model.vocab_size, hidden}, deviation, shares, has_first});
  }
  for (const StageLayers& stage : stages) {
    for (int layer = stage.first_layer; layer < stage.first_layer + stage.num_layers; ++layer) {
      const std::string name = "layers." + std::to_string(layer) + ".";
      all.push_back({name + "attention_norm.weight", {hidden}});
      all.push_back({name + "attention.wq", {queries, hidden}, deviation});
      all.push_back({name + "attention.wk", {keys, hidden}, deviation});
      all.push_back({name + "attention.wv", {keys, hidden}, deviation});
      all.push_back({name + "attention.wo", {hidden, queries}, residual});
      all.push_back({name + "mlp_norm.weight", {hidden}});
      all.push_back({name + "mlp.w_gate", {ffn, hidden}, deviation});
      all.push_back({name + "mlp.w_up", {ffn, hidden}, deviation});
      all.push_back({name + "mlp.w_down", {hidden, ffn}, residual});
    }
  }
  if (has_last) {
    all.push_back({"final_norm.weight", {hidden}});
    if (!model.tied_head) all.push_back({"head.weight", {model.vocab_size, hidden}, deviation});
  }
  std::stable_partition(all.begin(), all.end(), [](const Shape& shape) { return shape.deviation > 0; });
  return all;
}

void initialise(at::Tensor value, double deviation, std::uint64_t seed) {
  if (deviation == 0) {
    value.fill_(1);
    return;
  }
  Random random(seed);
  at::Tensor drawn = at::empty(value.sizes(), at::kDouble);
  double* number = drawn.data_ptr<double>();
  for (std::int64_t i = 0; i < drawn.numel(); ++i) number[i] = deviation * random.normal();
  value.copy_(drawn);
}

}  // namespace

std::vector<StageLayers> stage_layers(const std::vector<int>& layers_per_stage) {
  std::vector<StageLayers> stages;
  int first_layer = 0;
  for (std::size_t s = 0; s < layers_per_stage.size(); ++s) {
    stages.push_back({first_layer, layers_per_stage[s], s == 0, s + 1 == layers_per_stage.size()});
    first_layer += layers_per_stage[s];
  }
  return stages;
}

at::ScalarType compute_type(Precision precision) {
  switch (precision) {
    case Precision::float64:
      return at::kDouble;
    case Precision::float32:
      return at::kFloat;
    case Precision::bfloat16:
      break;
  }
  return at::kBFloat16;
}

ParameterSet::ParameterSet(const ModelSpec& model, const std::vector<StageLayers>& stages, Precision precision,
                           std::uint64_t seed)
    : precision_(precision) {
  const auto type = precision == Precision::float64 ? at::kDouble : at::kFloat;
  std::int64_t total = 0;
  for (const Shape& shape : shapes(model, stages)) {
    const std::int64_t count = c10::multiply_integers(shape.sizes);
    parameters_.push_back({.name = shape.name,
                           .value = {},
                           .gradient = {},
                           .offset = total,
                           .decays = shape.deviation > 0,
                           .tied = shape.tied,
                           .owned = shape.owned});
    total += count;
    if (shape.deviation > 0) num_decaying_ = total;
  }
  values_ = at::zeros({total}, type);
  gradients_ = at::zeros({total}, type);
  std::size_t i = 0;
  for (const Shape& shape : shapes(model, stages)) {
    Parameter& parameter = parameters_[i++];
    const std::int64_t count = c10::multiply_integers(shape.sizes);
    parameter.value = values_.narrow(0, parameter.offset, count).view(shape.sizes);
    parameter.gradient = gradients_.narrow(0, parameter.offset, count).view(shape.sizes);
    initialise(parameter.value, shape.deviation, mix_seed(seed, digest(shape.name)));
    parameter.value.requires_grad_(true);
    parameter.value.mutable_grad() = parameter.gradient;
  }
}

const Parameter& ParameterSet::at(const std::string& name) const {
  const auto found = std::ranges::find(parameters_, name, &Parameter::name);
  BALLAST_ASSERT(found != parameters_.end(), name);
  return *found;
}

double ParameterSet::squared_gradient_norm() const {
  double sum = 0;
  for (const Parameter& parameter : parameters_) {
    if (!parameter.owned) continue;
    sum += at::linalg_vector_norm(parameter.gradient, 2, std::nullopt, false, at::kDouble).square().item<double>();
  }
  return sum;
}

}  // namespace ballast
