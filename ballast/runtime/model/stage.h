// A run of transformer layers, with the embedding before them on the first stage and the final norm, head and loss
// after them on the last. It computes on whatever tokens the caller holds, none included: a stage without tokens still
// builds its part of the graph, so that backward passes through it and collectives inside the attention are joined.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "ballast/runtime/model/cross_entropy.h"
#include "ballast/runtime/model/layer.h"
#include "ballast/runtime/model/parameters.h"

namespace ballast {

class Stage {
 public:
  // REQUIRES: `parameters` was made for stages that include `layers`. Values are shared with it, not copied.
  Stage(const ModelSpec& model, const StageLayers& layers, const ParameterSet& parameters);

  // `input`: on the first stage tokens_T (int64), on the others hidden_TD of the stage before, in compute_type().
  // positions_T: int64, inside each token's document. -> hidden_TD.
  at::Tensor forward(const at::Tensor& input, const at::Tensor& positions_T, const AttentionFunction& attention) const;

  // Last stage: the sum of the cross entropy over labels_T, as linear_cross_entropy. REQUIRES: layers().is_last.
  at::Tensor loss(const at::Tensor& hidden_TD, const at::Tensor& labels_T) const;
  // Last stage: logits_TV in compute_type(). For inspection; training needs loss() only.
  at::Tensor logits(const at::Tensor& hidden_TD) const;

  const StageLayers& layers() const { return layers_; }

 private:
  ModelSpec model_;
  StageLayers layers_;
  Precision precision_;
  std::vector<TransformerLayer> stack_;
  at::Tensor embedding_;   // first stage
  at::Tensor final_norm_;  // last stage
  at::Tensor head_;        // last stage; the embedding where tied
};

}  // namespace ballast
