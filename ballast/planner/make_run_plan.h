// From a planner's choice to the run plan that is saved (requirement L7).
#pragma once

#include "ballast/ir/run_plan.h"
#include "ballast/planner/plan_run.h"

namespace ballast {

// Of the fastest candidate: bytes by tier are of its first simulated step; a restart is possible where the run writes
// checkpoints (every step where it states no interval). REQUIRES: a candidate is ranked.
RunPlan make_run_plan(const RunSubject& subject, const RunPlanning& planning);

}  // namespace ballast
