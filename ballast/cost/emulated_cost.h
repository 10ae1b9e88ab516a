// Cost of a run on an emulated cluster: computation as of the device that a rank stands for, on as many tokens as one
// token of the run stands for, dilated; messages as the emulated cards carry them. What paces the ranks, places the
// documents and predicts the step is one and the same.
#pragma once

#include <memory>

#include "ballast/cost/cluster_cost.h"
#include "ballast/cost/cost_model.h"
#include "ballast/spec/emulation_spec.h"
#include "ballast/spec/model_spec.h"

namespace ballast {

// `device`: of the preset that the emulation names. `run`: the small model whose numbers travel, of so many bytes each.
// Embedding, head and optimizer are not paced and cost nothing. REQUIRES: emulation.violations() is empty.
std::unique_ptr<CostModel> make_emulated_cost(std::shared_ptr<const DeviceCost> device, const EmulationSpec& emulation,
                                              const ModelSpec& run, Bytes bytes_per_number, bool routed);

}  // namespace ballast
