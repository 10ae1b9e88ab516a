// The learned numbers of one rank. Values and gradients are each ONE flat buffer, of which every parameter is a view,
// so that reducing gradients, clipping and the optimizer are one call each. Parameters that decay come first.
//
// A parameter's first value depends on the run's seed and its name alone, never on the layout: any split of the same
// model into stages starts with the same numbers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ballast/spec/model_spec.h"
#include "ballast/spec/run_spec.h"

namespace ballast {

// Which layers a pipeline stage holds. The first stage has the embedding, the last one the final norm and the head.
struct StageLayers {
  int first_layer = 0;
  int num_layers = 0;
  bool is_first = true;
  bool is_last = true;
  bool operator==(const StageLayers&) const = default;
};

// Of every stage, from the number of layers in each.
std::vector<StageLayers> stage_layers(const std::vector<int>& layers_per_stage);

struct Parameter {
  std::string name;         // "embedding.weight", "layers.3.attention.wq", "final_norm.weight", "head.weight"
  at::Tensor value;         // view of the flat values: a leaf whose grad is the view of the flat gradients
  at::Tensor gradient;      // the same tensor as value.grad()
  std::int64_t offset = 0;  // of its first number in the flat buffers
  bool decays = true;       // weight decay: matrices, not norms
  // A tied embedding on a pipeline of several ranks is held by the first and the last of them: its gradient is summed
  // over the tied group, and the last one's copy is not owned, so that norms and checkpoints count it once.
  bool tied = false;
  bool owned = true;
};

class ParameterSet {
 public:
  // All parameters of `stages`, the stages of one rank. Values are float64 for precision float64, else float32: for
  // bfloat16 they are the master copy, which the model rounds as it computes.
  ParameterSet(const ModelSpec& model, const std::vector<StageLayers>& stages, Precision precision, std::uint64_t seed);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  // REQUIRES: the name is in the set.
  const Parameter& at(const std::string& name) const;
  Precision precision() const { return precision_; }

  const at::Tensor& values() const { return values_; }
  const at::Tensor& gradients() const { return gradients_; }
  // The first num_decaying() numbers of the flat buffers decay, the others don't.
  std::int64_t num_decaying() const { return num_decaying_; }
  std::int64_t size() const { return values_.numel(); }

  void zero_gradients() { gradients_.zero_(); }
  // Sum of squares of the owned gradients, in float64.
  double squared_gradient_norm() const;

 private:
  Precision precision_;
  std::vector<Parameter> parameters_;
  at::Tensor values_;
  at::Tensor gradients_;
  std::int64_t num_decaying_ = 0;
};

// The type the model computes in: float64, float32 or bfloat16.
at::ScalarType compute_type(Precision precision);

}  // namespace ballast
