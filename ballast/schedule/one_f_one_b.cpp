#include "ballast/schedule/one_f_one_b.h"

#include "ballast/schedule/interleaved.h"

namespace ballast {

Schedule one_f_one_b(int num_ranks, int num_micro_batches) {
  Schedule schedule = interleaved(num_ranks, 1, num_micro_batches);
  schedule.name = "1f1b";
  return schedule;
}

}  // namespace ballast
