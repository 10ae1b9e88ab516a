// The run folders that compare, report and trace are given: read, told apart by name, warm-up steps left out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ballast/diagnose/run_comparison.h"
#include "ballast/io/run_folder.h"

namespace ballast::cli {

// Throws UserError for a folder that cannot be read or has no step left after `skip_steps`.
std::vector<RunFolder> read_runs(const std::vector<std::string>& paths, RunParts parts);

// Its figures without the first `skip_steps` steps. Throws UserError where none is left.
RunRecord record_of(const RunFolder& run, std::int64_t skip_steps);

// Names that differ: the last part of each path, with as many parts before it as that takes.
std::vector<std::string> distinct_names(const std::vector<std::filesystem::path>& paths);

}  // namespace ballast::cli
