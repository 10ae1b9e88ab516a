// Plans as JSON, one value a line (docs/formats/plan.md): what `ballast pack` writes, what a run folder keeps in
// plan.jsonl, and what a checkpoint holds of the packer. The formats carry a version; another one is refused.
//
// *_from_json reads what is there and throws UserError naming `where` and the key; it does not judge the value: call
// violations(). read_* read whole files and do both.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/ir/packed_step.h"
#include "ballast/ir/packer_state.h"
#include "ballast/ir/step_plan.h"

namespace ballast {

std::string to_json(const PackedStep& step);
std::string to_json(const ShardPlan& plan);
std::string to_json(
    const StepPlan& plan);  // boundaries of its shard plans are left out: they follow from the documents
std::string to_json(const PackerState& state);

PackedStep packed_step_from_json(std::string_view text, std::string_view where);
ShardPlan shard_plan_from_json(std::string_view text, std::string_view where);
StepPlan step_plan_from_json(std::string_view text, std::string_view where);
PackerState packer_state_from_json(std::string_view text, std::string_view where);

// A file of one value a line. Blank lines are skipped; errors name the file and the line.
std::vector<PackedStep> read_packed_steps(const std::filesystem::path& path);
std::vector<StepPlan> read_step_plans(const std::filesystem::path& path);

}  // namespace ballast
