// Of a step, the micro-batch worth a picture: zones, where its documents go, its three queues, as the pages draw it and
// as a run folder's placement.json holds it (docs/formats/placement.md).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "ballast/cost/cost_model.h"
#include "ballast/ir/step_plan.h"

namespace ballast::cli {

// A micro-batch of a step plan.
struct StepPlace {
  std::size_t dp = 0;
  std::size_t micro_batch = 0;
};

// The one of most query-key pairs of those whose keys go round rings, over two ranks or more; none where all gather.
std::optional<StepPlace> busiest_in_rings(const StepPlan& plan);

// {step, dp_rank, micro_batch, micro_batches (of the step, that may be shown), placement} and, with a cost in seconds,
// zones and the placement in time; nothing where no micro-batch goes round rings. `cost`: nullptr: not in seconds.
std::optional<nlohmann::ordered_json> step_placement_json(const StepPlan& plan, const CostModel* cost);

}  // namespace ballast::cli
