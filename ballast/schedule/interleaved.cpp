#include "ballast/schedule/interleaved.h"

#include <algorithm>
#include <string>

#include "ballast/schedule/counts.h"

namespace ballast {

std::vector<int> interleaved_rounds(int round_size, int num_micro_batches) {
  const int rounds = std::max(1, num_micro_batches / round_size);
  std::vector<int> sizes(static_cast<std::size_t>(rounds), num_micro_batches / rounds);
  for (int i = 0; i < num_micro_batches % rounds; ++i) ++sizes[static_cast<std::size_t>(i)];
  return sizes;
}

int interleaved_warmup(int num_ranks, int virtual_stages, int num_micro_batches, int rank, int round_size) {
  const int behind = num_ranks - 1 - rank;  // ranks between this one and the end of the pipeline
  if (virtual_stages == 1) return std::min(num_micro_batches, behind);
  const int first_round = interleaved_rounds(round_size == 0 ? num_ranks : round_size, num_micro_batches).front();
  return std::min(num_micro_batches * virtual_stages, (virtual_stages - 1) * first_round + 2 * behind);
}

Schedule interleaved(int num_ranks, int virtual_stages, int num_micro_batches, int round_size) {
  require_counts(num_ranks, virtual_stages, num_micro_batches);
  if (round_size != 0 && round_size < num_ranks) {
    throw UserError("schedule: round_size = " + std::to_string(round_size) +
                    ": must be the number of pipeline ranks, " + std::to_string(num_ranks) +
                    ", or more, or ranks would wait for each other between their virtual stages");
  }
  if (round_size == 0) round_size = num_ranks;

  Schedule schedule{.name = "interleaved",
                    .num_ranks = num_ranks,
                    .virtual_stages = virtual_stages,
                    .num_micro_batches = num_micro_batches,
                    .ranks = {}};
  for (int rank = 0; rank < num_ranks; ++rank) {
    std::vector<Action> forwards;
    std::vector<Action> backwards;
    int round_begin = 0;
    for (const int size : interleaved_rounds(round_size, num_micro_batches)) {
      for (int v = 0; v < virtual_stages; ++v) {
        for (int m = round_begin; m < round_begin + size; ++m) {
          forwards.push_back({.stage = v * num_ranks + rank, .kind = ActionKind::F, .micro_batch = m});
          const int last_first = virtual_stages - 1 - v;
          backwards.push_back({.stage = last_first * num_ranks + rank, .kind = ActionKind::B, .micro_batch = m});
        }
      }
      round_begin += size;
    }
    const auto warmup =
        static_cast<std::size_t>(interleaved_warmup(num_ranks, virtual_stages, num_micro_batches, rank, round_size));
    std::vector<Action>& actions =
        schedule.ranks.emplace_back(forwards.begin(), forwards.begin() + static_cast<std::ptrdiff_t>(warmup));
    for (std::size_t i = 0; i < backwards.size(); ++i) {
      if (warmup + i < forwards.size()) actions.push_back(forwards[warmup + i]);
      actions.push_back(backwards[i]);
    }
  }
  return schedule;
}

}  // namespace ballast
