#include "ballast/io/run_folder.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "ballast/base/error.h"
#include "ballast/io/atomic_file.h"
#include "ballast/io/plan_json.h"
#include "ballast/io/run_record_json.h"
#include "ballast/io/run_toml.h"
#include "ballast/io/timeline_json.h"

namespace ballast {

namespace {

namespace fs = std::filesystem;

// Cuts half a line off the end, which a run that is going or died leaves, and notes it.
void drop_half_line(std::string& text, const fs::path& file, std::vector<std::string>& notes) {
  if (text.empty() || text.back() == '\n') return;
  const std::size_t last = text.find_last_of('\n');
  text.resize(last == std::string::npos ? 0 : last + 1);
  notes.push_back(file.filename().string() + ": the last line is cut short and was left out");
}

// Calls read(line, "file line 3") for every line that is not blank.
template <class Read>
void each_line(const std::string& text, const fs::path& file, Read read) {
  std::size_t begin = 0;
  for (std::int64_t number = 1; begin < text.size(); ++number) {
    const std::size_t end = text.find('\n', begin);
    const std::string_view line(text.data() + begin, end - begin);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      read(line, file.string() + " line " + std::to_string(number));
    }
    begin = end + 1;
  }
}

std::vector<StepMetrics> read_metrics(const fs::path& file, std::vector<std::string>& notes) {
  std::string text = read_file(file);
  drop_half_line(text, file, notes);
  std::map<std::int64_t, StepMetrics> by_step;
  int repeated = 0;
  each_line(text, file, [&](std::string_view line, const std::string& where) {
    StepMetrics metrics = step_metrics_from_json(line, where);
    const std::int64_t step = metrics.step;
    if (!by_step.insert_or_assign(step, std::move(metrics)).second) ++repeated;
  });
  if (by_step.empty()) throw UserError(file.string() + ": holds no whole step yet");
  if (repeated > 0) {
    notes.push_back(file.filename().string() + ": " + std::to_string(repeated) +
                    " steps were run again after a resume; the later figures count");
  }
  std::vector<StepMetrics> metrics;
  for (auto& [step, value] : by_step) metrics.push_back(std::move(value));
  return metrics;
}

std::vector<StepPlan> read_plans(const fs::path& file, std::vector<std::string>& notes) {
  std::string text = read_file(file);
  drop_half_line(text, file, notes);
  std::map<std::int64_t, StepPlan> by_step;
  each_line(text, file, [&](std::string_view line, const std::string& where) {
    StepPlan plan = step_plan_from_json(line, where);
    require_valid(plan.violations(), where);
    const std::int64_t step = plan.step;
    by_step.insert_or_assign(step, std::move(plan));
  });
  std::vector<StepPlan> plans;
  for (auto& [step, plan] : by_step) plans.push_back(std::move(plan));
  return plans;
}

bool has_timeline(const fs::path& folder, const std::string& source) {
  return fs::exists(folder / (source == "measured" ? measured_timeline_name(0) : source + ".jsonl"));
}

// Spans of steps that metrics.jsonl has: a run that was killed leaves a step that only some ranks recorded.
void keep_whole_steps(Timeline& timeline, const std::set<std::int64_t>& steps, std::vector<std::string>& notes) {
  std::set<std::int64_t> dropped;
  std::erase_if(timeline.spans, [&](const Span& span) {
    if (steps.contains(span.step)) return false;
    dropped.insert(span.step);
    return true;
  });
  if (dropped.empty()) return;
  notes.push_back("the " + timeline.source + " timeline goes beyond metrics.jsonl; " + std::to_string(dropped.size()) +
                  " steps of it, from step " + std::to_string(*dropped.begin()) + ", were left out");
}

// What run.toml states, for a run that has no summary yet.
RunSummary summary_of_unfinished(const fs::path& folder, const std::vector<StepMetrics>& metrics) {
  RunSummary summary;
  const fs::path file = folder / "run.toml";
  if (fs::exists(file)) summary = summary_of(read_run_toml(file.string()));
  add_steps(summary, metrics, warm_up_steps(metrics.size()));
  return summary;
}

}  // namespace

RunFolder read_run_folder(const fs::path& path, RunParts parts) {
  RunFolder run;
  run.path = path;
  run.name = fs::absolute(path).lexically_normal().filename().string();
  if (run.name.empty()) run.name = fs::absolute(path).lexically_normal().parent_path().filename().string();
  if (!fs::is_directory(path)) throw UserError(path.string() + ": no such run folder");
  const fs::path metrics = path / "metrics.jsonl";
  if (!fs::exists(metrics)) {
    throw UserError(path.string() + ": not a run folder: it has no metrics.jsonl (`ballast train` writes one)");
  }
  run.metrics = read_metrics(metrics, run.notes);
  const fs::path summary = path / "summary.json";
  run.finished = fs::exists(summary);
  if (run.finished) {
    run.summary = run_summary_from_json(read_file(summary), summary.string());
  } else {
    run.summary = summary_of_unfinished(path, run.metrics);
    run.notes.push_back("no summary.json: the run is still going or did not finish; its figures are those of " +
                        std::to_string(run.metrics.size()) + " steps in metrics.jsonl");
  }
  const fs::path corpus = path / "corpus.json";
  if (fs::exists(corpus)) run.corpus = corpus_record_from_json(read_file(corpus), corpus.string());
  if (parts == RunParts::figures) return run;

  if (fs::exists(path / "plan.jsonl")) {
    run.plans = read_plans(path / "plan.jsonl", run.notes);
  } else {
    run.notes.push_back("no plan.jsonl: lengths and token delays are unknown");
  }
  std::set<std::int64_t> steps;
  for (const StepMetrics& step : run.metrics) steps.insert(step.step);
  for (const char* source : {"measured", "predicted", "replayed"}) {
    if (!has_timeline(path / "timeline", source)) continue;
    run.timelines.push_back(read_run_timeline(path / "timeline", source));
    keep_whole_steps(run.timelines.back(), steps, run.notes);
    if (run.timelines.back().spans.empty()) run.timelines.pop_back();  // a run without a cost predicts nothing
  }
  if (run.timelines.empty()) run.notes.push_back("no timeline: what ranks did and waited for is unknown");
  return run;
}

}  // namespace ballast
