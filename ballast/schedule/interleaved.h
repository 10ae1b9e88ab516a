// Interleaved 1F1B: V virtual stages a rank, stage s on rank s mod P, which divides the bubble by V. (Narayanan et al.
// 2021, section 2.2; Llama 3, section 3.3, for any number of micro-batches and any size of its rounds: requirement L3.)
//
// Micro-batches go through the pipeline in rounds. Inside a round a rank runs all its micro-batches on one virtual
// stage before it turns to the next: n_c of them, P or more. With n_c = P the schedule is depth-first (interleaved
// 1F1B), which holds the fewest activations; with n_c = N there is one round, breadth-first up to the last virtual
// stage, with the most time for each message to arrive. The rule for any N:
//   rounds = max(1, N div n_c); N mod rounds of them, the first ones, take one micro-batch more than the others.
// So no round is short: where N >= P every rank is busy from one virtual stage to the next, and a ragged N costs no
// bubble that a padded one would not; where N < P there is one round of N and ranks idle in between, which no order
// avoids. The larger rounds come first because the warm-up is sized by the first round, of n_1: rank r runs
//   min(N V, (V-1) n_1 + 2 (P-1-r))
// forwards, then one forward and one backward in turn. At most one more than that is in flight on it.
// Micro-batches may differ in length (requirement W11): the order does not depend on it.
#pragma once

#include <vector>

#include "ballast/ir/schedule.h"

namespace ballast {

// Without sends: see lowering.h. `round_size` is n_c; 0: P. One virtual stage gives 1F1B's order. Throws UserError
// where a number is less than 1, or round_size less than P.
Schedule interleaved(int num_ranks, int virtual_stages, int num_micro_batches, int round_size = 0);

// Micro-batches of each round, larger ones first. REQUIRES: round_size is 1 or more.
std::vector<int> interleaved_rounds(int round_size, int num_micro_batches);
// Forwards that `rank` runs before it takes turns, as above; 1F1B's P-1-r where V = 1.
int interleaved_warmup(int num_ranks, int virtual_stages, int num_micro_batches, int rank, int round_size = 0);

}  // namespace ballast
