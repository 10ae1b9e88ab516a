// A planner's choice as JSON, in run plans and in what `ballast plan --json` prints. For io/ and cli/ only.
#pragma once

#include <nlohmann/json.hpp>

#include "ballast/io/json_reader.h"
#include "ballast/spec/run_choice.h"

namespace ballast {

// {"degrees": {...}, "mapping": ..., "schedule": {...}, "zero": ..., "recompute": ..., "windows_per_micro_batch": ...,
// "packer": ..., "sharding": ...}
nlohmann::ordered_json run_choice_value(const RunChoice& choice);
// Of an object that has these keys among others. Throws UserError as JsonReader does.
RunChoice read_run_choice(const JsonReader& reader);

}  // namespace ballast
