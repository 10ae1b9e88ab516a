// Interleaved 1F1B: V virtual stages a rank, stage s on rank s mod P, which divides the bubble by V. (Narayanan et al.
// 2021, section 2.2; Llama 3, section 3.3, for any number of micro-batches: requirement L3.)
//
// Micro-batches go through the pipeline in rounds. Inside a round a rank runs all its micro-batches on one virtual
// stage before it turns to the next. The rule for any N:
//   rounds = max(1, N div P); N mod rounds of them, the first ones, take one micro-batch more than the others.
// So a round holds P micro-batches or more where N >= P, which keeps every rank busy from one virtual stage to the
// next; where N < P there is one round of N and ranks idle in between, which no order avoids. The larger rounds come
// first because the warm-up is sized by the first round, of n_1: rank r runs
//   min(N V, (V-1) n_1 + 2 (P-1-r))
// forwards, then one forward and one backward in turn. At most one more than that is in flight on it.
// Micro-batches may differ in length (requirement W11): the order does not depend on it.
#pragma once

#include <vector>

#include "ballast/ir/schedule.h"

namespace ballast {

// Without sends: see lowering.h. One virtual stage gives 1F1B's order. Throws UserError where an argument is less
// than 1.
Schedule interleaved(int num_ranks, int virtual_stages, int num_micro_batches);

// Micro-batches of each round, larger ones first.
std::vector<int> interleaved_rounds(int num_ranks, int num_micro_batches);
// Forwards that `rank` runs before it takes turns, as above; 1F1B's P-1-r where V = 1.
int interleaved_warmup(int num_ranks, int virtual_stages, int num_micro_batches, int rank);

}  // namespace ballast
