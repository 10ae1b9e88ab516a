// Thresholds of wlb's outlier queues, tuned on a sample of the corpus: imbalance against token delay (requirement W5).
#pragma once

#include <vector>

#include "ballast/cost/cost_model.h"
#include "ballast/spec/run_spec.h"

namespace ballast {

// What wlb came to on the sample with these queues.
struct QueueTrial {
  std::vector<Tokens> queues;
  double imbalance = 1;    // mean over steps
  double delay_steps = 0;  // mean over tokens
};

struct QueueTuning {
  std::vector<QueueTrial> frontier;  // no trial is better in both: delay rises, imbalance falls
  QueueTrial chosen;                 // of the frontier
  std::int64_t trials = 0;
  std::int64_t steps = 0;  // of the sample, the first tenth of which no figure counts
};

// Longest mean delay of a choice that is not asked for: about what WLB-LLM reports (half an iteration).
inline constexpr double kMostDelaySteps = 0.55;

// At most so many steps of a sample are taken.
inline constexpr std::int64_t kTuningSteps = 400;

// Tries every set of up to three thresholds of the eighths of the window, on wlb with the spec's other settings, and
// chooses the least imbalance at a mean delay of at most `most_delay`. `lengths`: the sample, in the order of training;
// at most kTuningSteps steps of it are taken. Throws as make_packer does, and UserError where the sample has no step.
QueueTuning tune_queues(const PackingSpec& spec, const CostModel& cost, const std::vector<Tokens>& lengths,
                        double most_delay = kMostDelaySteps);

}  // namespace ballast
