#include "ballast/runtime/parallel/pipeline_stages.h"

#include "ballast/base/error.h"

namespace ballast {

namespace {

std::vector<StageLayers> stages_of_rank(const std::vector<StageLayers>& all, int pp_rank, int pp) {
  std::vector<StageLayers> mine;
  for (auto s = static_cast<std::size_t>(pp_rank); s < all.size(); s += static_cast<std::size_t>(pp)) {
    mine.push_back(all[s]);
  }
  return mine;
}

}  // namespace

PipelineStages::PipelineStages(const ModelSpec& model, const std::vector<int>& layers_per_stage, int pp_rank, int pp,
                               Precision precision, std::uint64_t seed)
    : parameters_(model, stages_of_rank(stage_layers(layers_per_stage), pp_rank, pp), precision, seed),
      hidden_dim_(model.hidden_dim) {
  int number = pp_rank;
  for (const StageLayers& layers : stages_of_rank(stage_layers(layers_per_stage), pp_rank, pp)) {
    stages_.emplace(number, Stage(model, layers, parameters_));
    number += pp;
  }
}

const Stage& PipelineStages::stage(int number) const {
  const auto found = stages_.find(number);
  BALLAST_ASSERT(found != stages_.end(), "stage " + std::to_string(number) + " is on another rank");
  return found->second;
}

}  // namespace ballast
