#include "ballast/cost/cost_model.h"

namespace ballast {

Seconds CostModel::micro_batch(const MicroBatch& micro_batch) const {
  Seconds sum = 0;
  for (const Document& each : micro_batch.documents) sum += document(each.length);
  return sum;
}

}  // namespace ballast
