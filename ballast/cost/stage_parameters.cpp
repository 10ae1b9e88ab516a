#include "ballast/cost/stage_parameters.h"

namespace ballast {

std::int64_t stage_parameters(const ModelSpec& model, const std::vector<int>& stage_layers, int stage, int pp) {
  const bool last = stage + 1 == static_cast<int>(stage_layers.size());
  std::int64_t count = stage_layers[static_cast<std::size_t>(stage)] * model.layer_parameters();
  if (stage == 0) count += model.embedding_parameters();
  if (last) count += model.head_parameters();
  if (last && pp > 1 && model.tied_head) count += model.embedding_parameters();
  return count;
}

std::int64_t rank_parameters(const ModelSpec& model, const std::vector<int>& stage_layers, int rank, int pp) {
  std::int64_t count = 0;
  for (int stage = rank; stage < static_cast<int>(stage_layers.size()); stage += pp) {
    count += stage_parameters(model, stage_layers, stage, pp);
  }
  return count;
}

}  // namespace ballast
