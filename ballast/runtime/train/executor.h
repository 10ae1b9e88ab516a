// Runs one step plan on one rank: forwards, backwards, sends and receives in the order of the schedule, then leaves the
// gradient of the step's mean loss, reduced over every rank, in the model's gradient buffer. It holds no policy: which
// documents, which shards and which order all come with the plan, from a planner or from a file.
//
// Memory: the activations of the micro-batches in flight, two receives posted ahead, sends until their peer has them.
#pragma once

#include <vector>

#include "ballast/ir/step_plan.h"
#include "ballast/runtime/comm/mesh.h"
#include "ballast/runtime/parallel/pipeline_stages.h"
#include "ballast/runtime/profiler/span_recorder.h"
#include "ballast/runtime/train/micro_batch_data.h"

namespace ballast {

// Loss of the micro-batches whose last stage this rank holds.
struct StepLoss {
  double sum = 0;                             // over this rank's labels, divided by the step's number of labels
  std::vector<int> micro_batches_not_finite;  // whose loss is NaN or infinite
};

class Executor {
 public:
  // All outlive the executor. REQUIRES: `model` holds the stages of this rank under the plans' dims.
  Executor(PipelineStages& model, Mesh& mesh, SpanRecorder& recorder, RankHooks& hooks, TokenReader read);

  // REQUIRES: plan.violations() is empty and the model's gradients are zero. Throws RunError where a peer is lost.
  StepLoss run(const StepPlan& plan);

 private:
  PipelineStages& model_;
  Mesh& mesh_;
  SpanRecorder& recorder_;
  RankHooks& hooks_;
  TokenReader read_;
};

}  // namespace ballast
