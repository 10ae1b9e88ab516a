// Reads a run folder (docs/formats/run_folder.md). A run that is still going, or that died, has no summary.json and may
// end its files in half a line: that is read as far as it goes and said in `notes`, because such runs are the ones
// people look at. What is there but wrong is a UserError naming file, line and key.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ballast/ir/run_record.h"
#include "ballast/ir/step_plan.h"
#include "ballast/ir/timeline.h"

namespace ballast {

struct RunFolder {
  std::filesystem::path path;
  std::string name;                  // last part of the path
  bool finished = false;             // it has a summary.json
  RunSummary summary;                // from metrics and run.toml where unfinished
  std::vector<StepMetrics> metrics;  // by step, at least one; the last line of a step that was run twice (resume)
  CorpusRecord corpus;
  std::vector<StepPlan> plans;      // by step
  std::vector<Timeline> timelines;  // measured, predicted, replayed: those there are
  std::vector<std::string> notes;   // what was missing or cut short, a sentence each
};

enum class RunParts { figures, everything };  // figures: neither plans nor timelines

// Throws UserError: no such folder, not a run folder, or a file in it that is broken.
RunFolder read_run_folder(const std::filesystem::path& path, RunParts parts);

}  // namespace ballast
