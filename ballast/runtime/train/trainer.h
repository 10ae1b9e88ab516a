// The training loop of one rank: takes step plans from a source, has each executed, clips, steps the optimizer, and
// agrees with the other ranks once a step on what comes next. It knows no packer, no cost model and no file format;
// what it learns goes to a TrainObserver.
//
// Safety: ranks compare digests of the next plan before they exchange any tensor; a loss or gradient that is not finite
// stops every rank before the optimizer moves; a request to stop is honoured by all ranks after the same step.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ballast/runtime/train/adamw.h"
#include "ballast/runtime/train/executor.h"
#include "ballast/runtime/train/step_source.h"
#include "ballast/spec/run_spec.h"

namespace ballast {

// What is known once a step is done on all ranks.
struct StepResult {
  std::int64_t step = 0;
  double loss = 0;       // mean over all labels of the step
  double grad_norm = 0;  // before clipping
  double lr = 0;
  Seconds step_seconds = 0;
  Seconds recording_seconds = 0;           // this rank's, spent on keeping its timeline
  Seconds stall_seconds = 0;               // this rank's, waiting for the next plan
  std::vector<Seconds> work_seconds = {};  // by rank: computing
  std::vector<Seconds> wait_seconds = {};  // by rank: blocked on another rank
  Bytes peak_memory_bytes = 0;             // that tensors held on the fullest rank; 0: not counted (allocator.h)
};

class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  // This rank's spans of a step, before step_done of the same step. Its time counts as recording.
  virtual void spans(std::int64_t step, const std::vector<Span>& spans) = 0;
  virtual void step_done(const StepResult& result, const SourcedStep& step) = 0;
};

struct TrainOutcome {
  std::int64_t next_step = 0;  // the first step not done
  bool stopped = false;        // a rank was asked to stop
  bool data_ended = false;
};

class Trainer {
 public:
  // All references outlive the trainer. `stop_requested` is asked once a step. `save` writes a checkpoint; it is called
  // on every rank at the same step with the steps done and the source's state after the last of them.
  Trainer(PipelineStages& model, AdamW& optimizer, Mesh& mesh, SpanRecorder& recorder, RankHooks& hooks,
          TokenReader read, TrainingSpec training, std::function<bool()> stop_requested,
          std::function<void(std::int64_t steps_done, const std::string& source_state)> save);

  // Runs steps first_step .. training.steps - 1, or until stopped or out of data; then saves. Throws RunError naming
  // step, rank, micro-batch and documents where a loss is not finite, and both digests where plans differ.
  TrainOutcome train(StepSource& source, std::int64_t first_step, TrainObserver& observer);

 private:
  // What all ranks learn from each other between two steps.
  struct Agreement {
    bool stop = false;
    std::vector<Seconds> work_seconds = {};
    std::vector<Seconds> wait_seconds = {};
    Bytes peak_memory_bytes = 0;  // of the fullest rank
  };
  Agreement agree(const SourcedStep* next, Seconds work, Seconds wait);
  void refuse_non_finite(const StepPlan& plan, const StepLoss& mine, double loss, double grad_norm);

  PipelineStages& model_;
  AdamW& optimizer_;
  Mesh& mesh_;
  SpanRecorder& recorder_;
  RankHooks& hooks_;
  Executor executor_;
  TrainingSpec training_;
  std::function<bool()> stop_requested_;
  std::function<void(std::int64_t, const std::string&)> save_;
};

}  // namespace ballast
