// From what a run states to a schedule, by name.
#pragma once

#include <string>
#include <vector>

#include "ballast/ir/schedule.h"
#include "ballast/spec/run_spec.h"

namespace ballast {

// Lowered, ready for a step plan. `num_micro_batches` is of one pipeline. Throws UserError for an unknown name (with
// the nearest), for 1f1b with several virtual stages, and for numbers below 1.
Schedule make_schedule(const ScheduleSpec& spec, int num_ranks, int num_micro_batches);

}  // namespace ballast
