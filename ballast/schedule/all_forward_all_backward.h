// All forwards, then all backwards: every micro-batch through one virtual stage before the next, and back in the same
// order of micro-batches. Each stage's backwards stand together, so its gradients are complete, and can be reduced and
// dropped, once (ZeRO-2; Llama 3, section 3.3 and requirement L3). All N V activations of a rank are in flight.
#pragma once

#include "ballast/ir/schedule.h"

namespace ballast {

// Without sends: see lowering.h. Throws UserError where an argument is less than 1.
Schedule all_forward_all_backward(int num_ranks, int virtual_stages, int num_micro_batches);

}  // namespace ballast
