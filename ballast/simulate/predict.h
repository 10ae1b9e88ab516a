// Predicts a training step from its plan (requirement B1): what the executor will do, with durations from the cost
// model, run by the engine.
//
// Of a step: CONTROL (agreement on the plan), LOAD, the actions of the schedule, REDUCE_GRAD, REDUCE_TIED where the
// head is tied, REDUCE_NORM, OPTIMIZER, CHECKPOINT where one is due. Of an F: embedding on the first stage; of every
// layer its linear part, the all-gather of keys and values over cp, the rank's attention blocks; the head on the last
// stage. A B runs the same backwards, with REDUCE_KV in place of the gather. With tensor parallelism every layer's
// linear part has its EXCHANGE_TP; with ZeRO weights are gathered and gradients scattered in the background (zero.h),
// in place of REDUCE_GRAD. Reading tokens costs nothing here. Ranks without tokens join with no work.
#pragma once

#include "ballast/cost/cost_model.h"
#include "ballast/ir/step_plan.h"
#include "ballast/ir/timeline.h"
#include "ballast/simulate/program.h"
#include "ballast/simulate/step_costs.h"
#include "ballast/spec/model_spec.h"

namespace ballast {

// REQUIRES: the plan has no violations.
Program make_program(const StepPlan& plan, const ModelSpec& model, const CostModel& cost,
                     const ProgramSettings& settings = {});

// The same with the costs at hand. REQUIRES: they are of this plan.
Program make_program(const StepPlan& plan, const CostModel& cost, const ProgramSettings& settings,
                     const StepCosts& costs);

// Time 0 is the start of the step.
Timeline predict(const StepPlan& plan, const ModelSpec& model, const CostModel& cost,
                 const ProgramSettings& settings = {});

}  // namespace ballast
