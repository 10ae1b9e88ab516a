// Step after step of a run, planned: documents in the stream's order, packed, assigned, sharded, scheduled and
// predicted. Every rank may run one: the same run, corpus and state give the same plans. One thread at a time.
#pragma once

#include <optional>
#include <vector>

#include "ballast/cost/cost_model.h"
#include "ballast/ir/packer_state.h"
#include "ballast/ir/step_plan.h"
#include "ballast/ir/timeline.h"
#include "ballast/packing/packed_stream.h"
#include "ballast/planner/make_step_plan.h"
#include "ballast/simulate/fast_step.h"
#include "ballast/simulate/shared_links.h"
#include "ballast/spec/run_spec.h"
#include "ballast/workload/document_stream.h"

namespace ballast {

struct PlannedStep {
  StepPlan plan;
  Timeline predicted;  // of this step alone, from time 0; empty where no timelines are asked for
  FastStep fast;       // the same step's time by part
  Seconds predicted_seconds = 0;
  Seconds planning_seconds = 0;      // wall-clock this step's planning took
  double imbalance_micro_batch = 1;  // predicted
  double imbalance_cp = 1;           // predicted
};

struct PredictionOptions {
  bool timelines = true;
  std::vector<Axis> network_axes = {};         // that leave the node, for slow network cards (step_costs.h)
  std::optional<LinkTiers> shared_links = {};  // transfers that overlap share them (shared_links.h): needs timelines
  Seconds checkpoint_seconds = 0;              // of steps that write one ([training] checkpoint_every)
};

// Of step `step` of a run.
ProgramSettings step_settings(const RunSpec& run, const PredictionOptions& options, std::int64_t step);

// Fills what is predicted of a step that is planned.
void predict_step(PlannedStep& step, const RunSpec& run, const CostModel& cost, const PredictionOptions& options);

class StepStream {
 public:
  // `cost` must outlive the stream. Throws UserError as make_packer does. REQUIRES: the run has no violations.
  StepStream(const RunSpec& run, const CostModel& cost, DocumentStream documents,
             const PredictionOptions& options = {});
  StepStream(const StepStream&) = delete;
  StepStream& operator=(const StepStream&) = delete;

  // Nothing once the corpus has ended (a stream of a fixed number of epochs). Throws UserError where a document is
  // refused.
  std::optional<PlannedStep> next();

  // What to go on from after the last step returned: the packer's state, whose documents_in is also the position in the
  // stream. Restored into a stream of the same packing, seed and corpus, whatever its parallel layout, it gives the
  // same packed steps (requirement W12).
  PackerState state() const { return packed_.state(); }
  void restore(const PackerState& state);

 private:
  RunSpec run_;
  const CostModel& cost_;
  StepPlanSettings settings_;
  PredictionOptions options_;
  DocumentStream documents_;
  PackedStream packed_;
};

}  // namespace ballast
