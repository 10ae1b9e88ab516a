// Where documents would go under a plan whose keys go round rings, for the page of `ballast plan`.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "ballast/planner/plan_run.h"

namespace ballast::cli {

// As step_placement_json, of the first step, with `of`: {ranked (from 1; null: simulated, not ranked), choice (text),
// dp}. It is of the best candidate whose keys go round rings over two ranks or more; nothing where there is none.
// REQUIRES: something was ranked.
std::optional<nlohmann::ordered_json> placement_of_plan(const RunSubject& subject, const RunPlanning& planning);

}  // namespace ballast::cli
