#include "ballast/ir/run_plan.h"

namespace ballast {

Violations RunPlan::violations() const {
  Violations found = choice.dims.violations();
  const int product = choice.dims.world_size() * choice.tp;
  if (product != gpus) {
    found.push_back("gpus = " + std::to_string(gpus) + ": the degrees multiply to " + std::to_string(product));
  }
  if (window < 1) found.push_back("window_tokens: must be 1 or more");
  if (micro_batches < 1 || micro_batches % choice.dims.dp != 0) {
    found.push_back("micro_batches = " + std::to_string(micro_batches) +
                    ": must be a multiple of dp = " + std::to_string(choice.dims.dp));
  }
  if (!(step_seconds > 0)) found.push_back("step_seconds: must be over 0");
  if (!(tokens_per_second > 0)) found.push_back("tokens_per_second: must be over 0");
  if (headroom_bytes < 0) found.push_back("headroom_bytes: the plan does not fit");
  if (restart_every_steps < 1) found.push_back("restart_every_steps: must be 1 or more");
  return found;
}

}  // namespace ballast
