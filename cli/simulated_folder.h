// A simulated run as a run folder (docs/formats/run_folder.md), so that `report` and `compare` take it like a real one:
// figures by step, plans, the predicted timeline, a placement where keys go round rings; nothing measured.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "ballast/io/timeline_json.h"
#include "ballast/planner/step_stream.h"
#include "cli/placement_file.h"
#include "cli/run_writer.h"
#include "cli/simulated_figures.h"

namespace ballast::cli {

class SimulatedFolder {
 public:
  // Throws UserError where the folder holds a run already.
  SimulatedFolder(const std::filesystem::path& folder, const SimulationSubject& subject);

  void add(const PlannedStep& step);
  // Writes the summary. `command` as typed.
  void finish(const std::string& command, const PackerState& state);

  std::int64_t steps_without_timeline() const { return steps_without_timeline_; }

 private:
  std::filesystem::path folder_;
  const SimulationSubject& subject_;
  StepLog plans_;
  StepLog metrics_;
  TimelineWriter predicted_;
  PlacementFile placement_;
  std::size_t spans_ = 0;
  std::int64_t steps_without_timeline_ = 0;
};

}  // namespace ballast::cli
