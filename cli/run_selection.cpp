#include "cli/run_selection.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "ballast/base/error.h"

namespace ballast::cli {

namespace fs = std::filesystem;

namespace {

// The last `count` parts of a path, trailing slash or not.
std::string last_parts(const fs::path& path, int count) {
  fs::path rest = fs::absolute(path).lexically_normal();
  if (rest.filename().empty()) rest = rest.parent_path();
  fs::path name = rest.filename();
  for (int i = 1; i < count && rest.has_relative_path(); ++i) {
    rest = rest.parent_path();
    name = rest.filename() / name;
  }
  return name.string();
}

}  // namespace

std::vector<std::string> distinct_names(const std::vector<fs::path>& paths) {
  constexpr int kDeepest = 32;
  std::vector<std::string> names;
  for (int parts = 1; parts <= kDeepest; ++parts) {
    names.clear();
    for (const fs::path& path : paths) names.push_back(last_parts(path, parts));
    if (std::set<std::string>(names.begin(), names.end()).size() == names.size()) return names;
  }
  // The same folder given twice.
  for (std::size_t i = 0; i < names.size(); ++i)
    names[i] = last_parts(paths[i], 1) + " (" + std::to_string(i + 1) + ")";
  return names;
}

std::vector<RunFolder> read_runs(const std::vector<std::string>& paths, RunParts parts) {
  std::vector<RunFolder> runs;
  std::vector<fs::path> given(paths.begin(), paths.end());
  const std::vector<std::string> names = distinct_names(given);
  for (std::size_t i = 0; i < given.size(); ++i) {
    runs.push_back(read_run_folder(given[i], parts));
    runs.back().name = names[i];
  }
  return runs;
}

std::int64_t steps_to_skip(const std::optional<std::int64_t>& asked, const std::vector<RunFolder>& runs) {
  if (asked) return *asked;
  return std::all_of(runs.begin(), runs.end(), [](const RunFolder& run) { return run.metrics.size() > 1; }) ? 1 : 0;
}

RunRecord record_of(const RunFolder& run, std::int64_t skip_steps) {
  const auto skipped = static_cast<std::size_t>(skip_steps);
  if (skipped >= run.metrics.size()) {
    throw UserError(run.path.string() + ": --skip-steps " + std::to_string(skip_steps) + " leaves none of its " +
                    std::to_string(run.metrics.size()) + " steps");
  }
  RunRecord record{run.name, run.summary, run.corpus, run.metrics};
  record.steps.erase(record.steps.begin(), record.steps.begin() + static_cast<std::ptrdiff_t>(skipped));
  return record;
}

}  // namespace ballast::cli
