// placement.json of a run folder (docs/formats/placement.md): written once, of the first step that has a micro-batch
// whose keys go round rings; read back for the report's page. One thread.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "ballast/cost/cost_model.h"
#include "ballast/ir/step_plan.h"

namespace ballast::cli {

class PlacementFile {
 public:
  // `cost`: in seconds, and outlives this; nullptr, where the run has none: nothing is written. A run that goes on
  // (`first_step` over 0) keeps the file that is there; one that starts removes what another left.
  PlacementFile(std::filesystem::path folder, const CostModel* cost, std::int64_t first_step);

  void add(const StepPlan& plan);

 private:
  std::filesystem::path path_;
  const CostModel* cost_;  // nullptr once written
};

// Nothing where the folder has no such file. Throws UserError naming file and key where it is not as documented.
std::optional<nlohmann::ordered_json> read_placement_file(const std::filesystem::path& folder);

}  // namespace ballast::cli
