// The part of the model that one pipeline rank holds: the parameters of its stages in flat buffers, and the stages by
// their number. Stage s of V * P lies on pipeline rank s mod P.
#pragma once

#include <map>
#include <vector>

#include "ballast/runtime/model/parameters.h"
#include "ballast/runtime/model/stage.h"
#include "ballast/spec/model_spec.h"

namespace ballast {

class PipelineStages {
 public:
  // layers_per_stage: of all stages of the pipeline, not only this rank's. REQUIRES: pp_rank < pp, and as many stages
  // as a multiple of pp.
  PipelineStages(const ModelSpec& model, const std::vector<int>& layers_per_stage, int pp_rank, int pp,
                 Precision precision, std::uint64_t seed);

  // REQUIRES: this rank holds it.
  const Stage& stage(int number) const;

  ParameterSet& parameters() { return parameters_; }
  const ParameterSet& parameters() const { return parameters_; }
  // Of what crosses between stages: activation_TD and its gradient.
  at::ScalarType activation_type() const { return compute_type(parameters_.precision()); }
  int hidden_dim() const { return hidden_dim_; }

 private:
  ParameterSet parameters_;
  std::map<int, Stage> stages_;
  int hidden_dim_;
};

}  // namespace ballast
