// A run plan (requirement L7): what was chosen for a phase of training, what it is expected to cost, and when to choose
// again. Versioned; saved as JSON (io/run_plan_json.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/base/units.h"
#include "ballast/spec/run_choice.h"

namespace ballast {

// Plan again where `measure` passes `limit`.
struct ReplanTrigger {
  std::string measure;  // "step_seconds over predicted"
  double limit = 0;
  std::string why;
  bool operator==(const ReplanTrigger&) const = default;
};

struct RunPlan {
  static constexpr int kVersion = 1;

  std::string predicted_by;  // name of the cost model
  int gpus = 0;
  RunChoice choice;

  // The batch that the plan is for, and holds to.
  Tokens window = 0;       // of the stated run
  int micro_batches = 0;   // of the choice, a step, over all pipelines
  Tokens max_tokens = 0;   // of a micro-batch
  Tokens step_tokens = 0;  // predicted mean

  Seconds step_seconds = 0;  // predicted mean
  double step_spread = 0;    // standard deviation over the mean: steps of real documents differ
  double tokens_per_second = 0;

  std::map<std::string, Bytes> bytes_by_tier;   // that the busiest GPU sends a step, by the outermost tier of its group
  std::map<std::string, Bytes> memory_by_part;  // of the fullest GPU
  Bytes memory_bytes = 0;                       // that a GPU has
  Bytes headroom_bytes = 0;

  // A run may go over to another plan after a step that is a multiple of this one, where a checkpoint is written
  // anyway.
  std::int64_t restart_every_steps = 0;
  std::vector<ReplanTrigger> triggers;

  Violations violations() const;
  bool operator==(const RunPlan&) const = default;
};

}  // namespace ballast
