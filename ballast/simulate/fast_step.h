// Where the time of a predicted step goes, without its timeline: what analyze(predict(...)) says, to the bit in every
// clock, for tens of thousands of ranks. It runs the same parts (step_costs.h) under the same rules; what makes it fast
// is that the ranks of a context parallel group take the same actions and meet in every layer, so that a group is
// advanced as one array of clocks, and that nothing is recorded.
#pragma once

#include <cstdint>

#include "ballast/cost/cost_model.h"
#include "ballast/ir/step_plan.h"
#include "ballast/simulate/analysis.h"
#include "ballast/simulate/step_costs.h"
#include "ballast/spec/model_spec.h"

namespace ballast {

struct FastStep {
  StepTime time;            // from 0
  std::int64_t events = 0;  // spans that the timeline would have
};

// Throws RunError as predict does where the schedule never finishes. REQUIRES: the plan has no violations.
FastStep fast_step(const StepPlan& plan, const ModelSpec& model, const CostModel& cost,
                   const ProgramSettings& settings = {});

// The same with the costs at hand. REQUIRES: they are of these dims and stages.
FastStep fast_step(const ParallelDims& dims, const Schedule& schedule, const StepCosts& costs,
                   const ProgramSettings& settings);

}  // namespace ballast
