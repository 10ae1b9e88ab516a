#include "ballast/cost/cost_model.h"

namespace ballast {

Seconds CostModel::layer_attention(const AttentionBlock& block) const {
  const auto [forward, backward] = attention_passes(block);
  return forward + backward;
}

Seconds CostModel::layer_attention(Tokens length) const {
  return layer_attention({.queries = {0, length}, .keys = {0, length}});
}

Seconds CostModel::micro_batch(const MicroBatch& micro_batch) const {
  Seconds sum = 0;
  for (const Document& each : micro_batch.documents) sum += document(each.length);
  return sum;
}

}  // namespace ballast
