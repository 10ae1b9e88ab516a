// From a packed step to a step plan: which pipeline runs which micro-batch and in what order, how each is sharded over
// the cp axis, and the schedule. Pure: the same arguments give the same plan on every rank.
#pragma once

#include <string>
#include <vector>

#include "ballast/cost/cost_model.h"
#include "ballast/ir/packed_step.h"
#include "ballast/ir/step_plan.h"
#include "ballast/sharding/sharder.h"
#include "ballast/spec/run_spec.h"

namespace ballast {

// How the micro-batches of a step are shared out among the dp pipelines.
enum class PipelineAssignment {
  contiguous,  // the first N/dp to pipeline 0, and so on, in arrival order: what plain training does
  balanced,    // longest predicted time first, to the pipeline with the least so far that has room; each pipeline then
               // in its best order (pipeline_order.h)
};

struct StepPlanSettings {
  ParallelDims dims;
  ScheduleSpec schedule;
  std::vector<int> stage_layers;  // of each of the pp x virtual_stages stages
  std::string sharding = "adaptive";
  PlacementOptions placement = {};
  PipelineAssignment assignment = PipelineAssignment::balanced;
};

// contiguous for the plain and next-fit packers, balanced for the others. REQUIRES: the run has no violations.
StepPlanSettings step_plan_settings(const RunSpec& run);

// Every pipeline runs the same number of micro-batches: where dp does not divide N, the last are empty. Throws
// UserError for an unknown schedule or sharding and for a step without micro-batches.
StepPlan make_step_plan(const PackedStep& packed, const StepPlanSettings& settings, const CostModel& cost);

// Which micro-batches each pipeline runs, in the order in which it runs them: places in `seconds`, their predicted
// times. REQUIRES: dp divides their number; `schedule` is of one pipeline.
std::vector<std::vector<std::size_t>> order_micro_batches(const std::vector<Seconds>& seconds,
                                                          const StepPlanSettings& settings, const Schedule& schedule);

// By pipeline, the places in `seconds`; longest first to the least loaded pipeline of those with fewer than
// ceil(size / pipelines).
std::vector<std::vector<std::size_t>> assign_balanced(const std::vector<Seconds>& seconds, int pipelines);

}  // namespace ballast
