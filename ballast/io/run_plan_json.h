// Run plans as JSON (docs/formats/run_plan.md).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "ballast/ir/run_plan.h"

namespace ballast {

std::string to_json(const RunPlan& plan);
// Throws UserError naming `where`, the key and what is allowed: not JSON, a key that is missing or unknown, another
// version, a plan with violations.
RunPlan run_plan_from_json(std::string_view text, std::string_view where);

RunPlan read_run_plan(const std::filesystem::path& path);
void write_run_plan(const std::filesystem::path& path, const RunPlan& plan);  // whole or not at all

}  // namespace ballast
