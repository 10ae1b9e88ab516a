// What a finished (or stopped) run amounts to, from what its folder holds.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ballast/ir/packer_state.h"
#include "ballast/ir/run_record.h"
#include "ballast/spec/run_spec.h"

namespace ballast::cli {

// Replays the run's measured timeline as if every rank had a core of its own, writes timeline/replayed.jsonl, and fills
// replayed_step_seconds in metrics.jsonl. For runs under a core lease.
void replay_run(const std::filesystem::path& folder);

// From metrics.jsonl and plan.jsonl. `command`: as typed. `state`: of the packer after the last step; empty for plans
// from a file. The first step counts in totals but not in speeds: it warms caches and allocators up.
RunSummary summarise_run(const std::filesystem::path& folder, const RunSpec& spec, const std::string& command,
                         const PackerState& state, const std::vector<std::string>& domains);

// One line: by kind of action, the error of the predicted busy time against the replayed or measured one, over the
// steps after the first; empty where nothing was predicted.
std::string prediction_by_kind(const std::filesystem::path& folder);

// Two or three lines for a person.
std::string to_text(const RunSummary& summary);

}  // namespace ballast::cli
