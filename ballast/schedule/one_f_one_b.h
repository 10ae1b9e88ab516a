// 1F1B: one stage a rank. Rank r runs min(N, P-1-r) forwards to fill the pipeline, then one forward and one backward in
// turn, then the backwards that are left. At most min(N, P-r) micro-batches are in flight on rank r. (PipeDream-flush;
// Megatron-LM, Narayanan et al. 2021, section 2.2.)
#pragma once

#include "ballast/ir/schedule.h"

namespace ballast {

// Without sends: see lowering.h. Throws UserError where num_ranks or num_micro_batches is less than 1.
Schedule one_f_one_b(int num_ranks, int num_micro_batches);

}  // namespace ballast
