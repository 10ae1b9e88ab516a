// What a stage of a pipeline holds: said once for the simulator's exchanges and for memory.
#pragma once

#include <cstdint>
#include <vector>

#include "ballast/spec/model_spec.h"

namespace ballast {

// Learned numbers of a stage: its layers, the embedding on the first, the head on the last; a tied embedding is held on
// both, where they are on two of the `pp` pipeline ranks. `stage_layers`: of all stages.
std::int64_t stage_parameters(const ModelSpec& model, const std::vector<int>& stage_layers, int stage, int pp);

// Of all stages of pipeline rank `rank`.
std::int64_t rank_parameters(const ModelSpec& model, const std::vector<int>& stage_layers, int rank, int pp);

}  // namespace ballast
