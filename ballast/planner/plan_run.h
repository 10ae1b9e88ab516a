// The planner (requirement L6): all choices, cut by memory, ranked by simulated time on the user's documents; for each
// that is not taken, why.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ballast/cost/memory.h"
#include "ballast/planner/step_estimator.h"

namespace ballast {

struct RankedCandidate {
  RunChoice choice;
  Seconds step_seconds = 0;  // predicted mean
  double tokens_per_second = 0;
  double step_spread = 0;  // standard deviation of a step over the mean
  double bubble_share = 0;
  double exposed_communication_share = 0;
  double imbalance = 1;
  Bytes peak_memory_bytes = 0;
};

// Kinds of reasons; each text names one. Among them:
inline constexpr const char* kNoMemoryReason = "does not fit in memory";
inline constexpr const char* kBoundedReason =
    "slower: not even without a bubble or an exchange as fast as those ranked";
struct Rejections {
  std::int64_t count = 0;
  std::map<std::string, std::int64_t> by_reason;
};

// All choices of one set of degrees: how far they came.
struct DegreesVerdict {
  ParallelDims dims;
  int tp = 1;
  std::int64_t choices = 0;
  std::int64_t fit = 0;
  Bytes least_missing_bytes = 0;  // of those that do not fit, where none fits
  RunChoice best;                 // by simulation where simulated, else by bound; where one fits
  bool simulated = false;
  double tokens_per_second = 0;  // simulated, or what the best cannot exceed
  Bytes peak_memory_bytes = 0;   // of the best
};

// The best candidate with one thing changed: what that thing is worth.
struct Variation {
  std::string what;  // "packer plain"
  RunChoice choice;
  Bytes missing_bytes = 0;  // over 0: it does not fit
  double tokens_per_second = 0;
};

struct RunPlanning {
  std::vector<RankedCandidate> ranked;  // fastest first, simulated over run.plan.final_steps
  // Every choice that was simulated, over run.plan.steps, fastest first.
  std::vector<RankedCandidate> simulated;
  std::vector<DegreesVerdict> degrees;  // fastest first, those that do not fit last
  std::vector<Variation> variations;    // of ranked.front(), over as many steps; none that fits is faster
  RunSpec run;                          // that choices were made for: queues tuned
  std::int64_t considered = 0;
  Rejections rejected;
  Seconds planning_seconds = 0;
  // Where nothing fits in memory: what comes nearest, and by how many bytes it does not.
  std::optional<RunChoice> nearest;
  Bytes missing_bytes = 0;
};

// The most that a GPU of this run holds, over pipeline ranks; `worst`, where given, gets the parts of that one.
Bytes peak_memory(const RunSpec& run, const Schedule& schedule, MemoryParts* worst = nullptr);

// `progress(done, best)`, where given, is called now and then with the choices dealt with.
// Throws UserError where run.plan asks for what the model or cluster cannot be (naming key and value), or the workload
// ends before the steps are simulated. REQUIRES: run.plan.gpus is 1 or more.
RunPlanning plan_run(const RunSubject& subject, const std::function<void(std::int64_t, double)>& progress = nullptr);

}  // namespace ballast
