#include "ballast/schedule/all_forward_all_backward.h"

#include "ballast/schedule/counts.h"

namespace ballast {

Schedule all_forward_all_backward(int num_ranks, int virtual_stages, int num_micro_batches) {
  require_counts(num_ranks, virtual_stages, num_micro_batches);
  Schedule schedule{.name = "all-forward-all-backward",
                    .num_ranks = num_ranks,
                    .virtual_stages = virtual_stages,
                    .num_micro_batches = num_micro_batches,
                    .ranks = {}};
  for (int rank = 0; rank < num_ranks; ++rank) {
    std::vector<Action>& actions = schedule.ranks.emplace_back();
    for (int v = 0; v < virtual_stages; ++v) {
      for (int m = 0; m < num_micro_batches; ++m) {
        actions.push_back({.stage = v * num_ranks + rank, .kind = ActionKind::F, .micro_batch = m});
      }
    }
    for (int v = virtual_stages - 1; v >= 0; --v) {
      for (int m = 0; m < num_micro_batches; ++m) {
        actions.push_back({.stage = v * num_ranks + rank, .kind = ActionKind::B, .micro_batch = m});
      }
    }
  }
  return schedule;
}

}  // namespace ballast
