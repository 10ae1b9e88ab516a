// What a run on an emulated cluster is priced by.
#pragma once

#include <memory>
#include <string>

#include "ballast/cost/cost_model.h"
#include "ballast/spec/emulation_spec.h"
#include "ballast/spec/run_spec.h"

namespace ballast::cli {

// Reads the device profile that the emulation names. Throws UserError.
std::unique_ptr<CostModel> make_emulated_cost(const EmulationSpec& emulation, const RunSpec& run);

// Throws UserError where the run has another number of ranks than the emulated cluster, `file`.
void require_ranks(const EmulationSpec& emulation, const std::string& file, const RunSpec& run);

}  // namespace ballast::cli
