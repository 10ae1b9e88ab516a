#include "ballast/schedule/bubble.h"

#include "ballast/base/error.h"

namespace ballast {

double ideal_bubble_share(int num_ranks, int virtual_stages, int num_micro_batches) {
  BALLAST_ASSERT(num_ranks > 0 && virtual_stages > 0 && num_micro_batches > 0, "counts are 1 or more");
  const double ranks = num_ranks;
  const double stages = virtual_stages;
  const double micro_batches = num_micro_batches;
  const double idle = num_micro_batches >= num_ranks ? ranks - 1 : stages * (ranks - micro_batches) + micro_batches - 1;
  return idle / (idle + micro_batches * stages);
}

}  // namespace ballast
