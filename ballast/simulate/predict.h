// Predicts a training step from its plan (requirement B1): what the executor will do, with durations from the cost
// model, run by the engine.
//
// Of a step: CONTROL (agreement on the plan), LOAD, the actions of the schedule, REDUCE_GRAD, REDUCE_TIED where the
// head is tied, REDUCE_NORM, OPTIMIZER. Of an F: embedding on the first stage; of every layer its linear part, the
// all-gather of keys and values over cp, the rank's attention blocks; the head on the last stage. A B runs the same
// backwards, with REDUCE_KV in place of the gather. Reading tokens costs nothing here. Ranks without tokens join with
// no work.
#pragma once

#include "ballast/cost/cost_model.h"
#include "ballast/ir/step_plan.h"
#include "ballast/ir/timeline.h"
#include "ballast/simulate/program.h"
#include "ballast/spec/model_spec.h"

namespace ballast {

// `gradient_bytes`: of one number of a gradient. REQUIRES: the plan has no violations.
Program make_program(const StepPlan& plan, const ModelSpec& model, const CostModel& cost, Bytes gradient_bytes = 4);

// Time 0 is the start of the step.
Timeline predict(const StepPlan& plan, const ModelSpec& model, const CostModel& cost, Bytes gradient_bytes = 4);

// Parameters that pipeline rank `pp` holds: its layers, the embedding on the first stage, the head on the last; a tied
// embedding is held on both.
std::int64_t rank_parameters(const StepPlan& plan, const ModelSpec& model, int pp);

}  // namespace ballast
