// The order in which a pipeline runs micro-batches of unequal length (requirement W11). While the pipeline fills and
// drains, ranks idle for as long as its first and last micro-batches take, and neighbours of unequal length stall each
// other, so order is worth several percent of a step where lengths differ.
#pragma once

#include <cstddef>
#include <vector>

#include "ballast/base/units.h"
#include "ballast/ir/schedule.h"

namespace ballast {

// Predicted length of a pipeline's step: micro-batch m, in the order it is run, takes seconds[m] in all, shared evenly
// by the stages, a third of it forward; transfers take no time. REQUIRES: as many as the schedule's micro-batches.
Seconds pipeline_seconds(const Schedule& schedule, const std::vector<Seconds>& seconds);

// Which of `seconds` to run first, second, ...: the best by pipeline_seconds of arrival order, rising, falling, and
// rising then falling; arrival order where none is better.
std::vector<std::size_t> best_pipeline_order(const Schedule& schedule, const std::vector<Seconds>& seconds);

}  // namespace ballast
