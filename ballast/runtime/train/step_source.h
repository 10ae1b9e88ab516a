// Where the trainer gets its step plans: from a planner that runs ahead, or from a file. The trainer does not know
// which.
#pragma once

#include <optional>
#include <string>

#include "ballast/ir/step_plan.h"
#include "ballast/ir/timeline.h"

namespace ballast {

struct SourcedStep {
  StepPlan plan;
  Timeline predicted;                // of this step, from 0; empty where nothing was predicted
  Seconds predicted_seconds = 0;     // 0 where nothing was predicted
  Seconds planning_seconds = 0;      // spent on this step, wherever it was spent
  double imbalance_micro_batch = 1;  // predicted: slowest x N / total over the micro-batches of the step
  double imbalance_cp = 1;           // predicted: the same over the ranks of a cp group, weighted by work
  std::string state_after;           // opaque: what the source needs to go on after this step, for a checkpoint
};

class StepSource {
 public:
  virtual ~StepSource() = default;
  // The next step, or nothing at the end of the data. Blocks while it is being planned.
  virtual std::optional<SourcedStep> next() = 0;
};

}  // namespace ballast
