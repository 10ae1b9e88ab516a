// The run folders that compare, report and trace are given: read, told apart by name, warm-up steps left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ballast/diagnose/run_comparison.h"
#include "ballast/io/run_folder.h"

namespace ballast::cli {

// Throws UserError for a folder that cannot be read or has no step left after `skip_steps`.
std::vector<RunFolder> read_runs(const std::vector<std::string>& paths, RunParts parts);

// Steps to leave out: as asked, or else the first, which warms up, where every run has more; a run's own summary leaves
// it out too.
std::int64_t steps_to_skip(const std::optional<std::int64_t>& asked, const std::vector<RunFolder>& runs);

// Its figures without the first `skip_steps` steps. Throws UserError where none is left.
RunRecord record_of(const RunFolder& run, std::int64_t skip_steps);

// Names that differ: the last part of each path, with as many parts before it as that takes.
std::vector<std::string> distinct_names(const std::vector<std::filesystem::path>& paths);

}  // namespace ballast::cli
