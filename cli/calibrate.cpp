// ballast calibrate: a profile refitted from runs that were predicted with it, and what changed.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "ballast/base/error.h"
#include "ballast/io/atomic_file.h"
#include "ballast/io/profile_json.h"
#include "ballast/io/run_folder.h"
#include "ballast/io/run_toml.h"
#include "ballast/planner/calibrate_profile.h"
#include "cli/run_selection.h"
#include "cli/verbs.h"

namespace ballast::cli {

namespace {

struct CalibrateOptions {
  std::vector<std::string> runs;
  std::string profile;
  std::string out;
  bool json = false;
  bool quiet = false;
};

// The run as it was, its steps after the first, and what its ranks did: replayed where they shared cores.
CalibrationRun read_run(const RunFolder& folder) {
  CalibrationRun run{.run = read_run_toml((folder.path / "run.toml").string()), .plans = {}, .measured = {}};
  std::set<std::int64_t> warm_up;
  for (std::size_t i = 0; i < warm_up_steps(folder.metrics.size()); ++i) warm_up.insert(folder.metrics[i].step);
  for (const StepPlan& plan : folder.plans) {
    if (!warm_up.contains(plan.step)) run.plans.push_back(plan);
  }
  for (const char* source : {"replayed", "measured"}) {
    for (const Timeline& timeline : folder.timelines) {
      if (timeline.source == source && run.measured.spans.empty()) run.measured = timeline;
    }
  }
  std::erase_if(run.measured.spans, [&](const Span& span) { return warm_up.contains(span.step); });
  if (run.measured.spans.empty() || run.plans.empty()) {
    throw UserError(folder.path.string() +
                    ": holds no measured timeline with its plans, as `ballast train` writes them");
  }
  return run;
}

std::string profile_of(const CalibrateOptions& options, const std::vector<CalibrationRun>& runs) {
  if (!options.profile.empty()) return options.profile;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].run.profile.empty()) {
      throw UserError(options.runs[i] + ": was trained without a [cost] profile; name the one to refit with --profile");
    }
    if (runs[i].run.profile != runs[0].run.profile) {
      throw UserError(options.runs[i] + ": was predicted with " + runs[i].run.profile + ", " + options.runs[0] +
                      " with " + runs[0].run.profile + "; name the one to refit with --profile");
    }
  }
  return runs[0].run.profile;
}

void run(const CalibrateOptions& options) {
  std::vector<CalibrationRun> runs;
  for (const RunFolder& folder : read_runs(options.runs, RunParts::everything)) runs.push_back(read_run(folder));
  const std::string path = profile_of(options, runs);
  Calibration calibration = calibrate_profile(read_hardware_profile(path), runs);
  std::string names;
  for (const std::string& name : options.runs) names += " " + name;
  calibration.profile.measured_by += "; refitted by: ballast calibrate" + names;
  AtomicFile file(options.out);
  file.write(to_json(calibration.profile));
  file.commit();
  if (options.json) {
    nlohmann::ordered_json changes = nlohmann::ordered_json::array();
    for (const ProfileChange& change : calibration.changes) {
      changes.push_back({{"part", change.part}, {"scale", change.scale}, {"samples", change.samples}});
    }
    const nlohmann::ordered_json result{
        {"profile", path},
        {"out", options.out},
        {"changes", std::move(changes)},
        {"work_error", {{"before", calibration.work_error_before}, {"after", calibration.work_error_after}}},
        {"step_error", {{"before", calibration.step_error_before}, {"after", calibration.step_error_after}}}};
    fmt::print("{}\n", result.dump(2));
    return;
  }
  if (options.quiet) return;
  fmt::print("{:<20} {:>15}  {}\n", "part", "times as long", "from");
  for (const ProfileChange& change : calibration.changes) {
    fmt::print("{:<20} {:>15.3f}  {} {}\n", change.part, change.scale, change.samples,
               change.part.find(' ') == std::string::npos ? "steps" : "micro-batches of a rank");
  }
  fmt::print("\nerror of an F's or B's work {:.1f}% before, {:.1f}% after; of a step {:.1f}% before, {:.1f}% after\n",
             100 * calibration.work_error_before, 100 * calibration.work_error_after,
             100 * calibration.step_error_before, 100 * calibration.step_error_after);
  fmt::print("written  {}\n", options.out);
}

}  // namespace

void add_calibrate(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("calibrate", "Refit a profile from runs that were predicted with it");
  const auto options = std::make_shared<CalibrateOptions>();
  verb->add_option("runs", options->runs, "Run folders with measured timelines")->required()->expected(1, 1000);
  verb->add_option("--out", options->out, "The refitted profile")->required()->type_name("FILE");
  verb->add_option("--profile", options->profile, "The profile to refit; default: the runs' own")->type_name("FILE");
  verb->add_flag("--json", options->json, "One JSON object on standard output");
  verb->add_flag("--quiet", options->quiet, "No text on standard output");
  verb->footer(
      "Example: let the next runs be predicted from the last\n"
      "  ballast calibrate runs/quickstart --out profile_refitted.json");
  verb->callback([options] { run(*options); });
}

}  // namespace ballast::cli
