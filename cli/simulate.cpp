// ballast simulate: what a run would do on a cluster that need not be at hand.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "ballast/base/error.h"
#include "ballast/io/atomic_file.h"
#include "ballast/io/chrome_trace.h"
#include "ballast/io/plan_json.h"
#include "ballast/io/profile_json.h"
#include "ballast/planner/run_queues.h"
#include "ballast/planner/step_stream.h"
#include "cli/simulated_figures.h"
#include "cli/simulated_folder.h"
#include "cli/simulated_run.h"
#include "cli/verbs.h"

namespace ballast::cli {

namespace {

using Clock = std::chrono::steady_clock;

struct SimulateOptions {
  std::string command;
  std::string run_toml;
  std::vector<std::string> overrides;
  std::string plan;
  std::string trace;
  std::string out;
  std::int64_t skip_steps = 0;
  bool share_links = false;
  bool extrapolate = false;
  bool json = false;
  bool quiet = false;
};

constexpr int kMostSharingRanks = 1024;  // in order of time, a step of so many takes seconds

DocumentStream documents_of(const SimulationSubject& subject) {
  const RunSpec& run = subject.run;
  return {subject.documents.lengths,
          subject.documents.domains,
          {.shuffle = run.shuffle, .seed = run.seed, .num_epochs = run.epochs, .num_documents = run.documents}};
}

SimulationSubject read_subject(const SimulateOptions& options) {
  const std::string& where = options.run_toml;
  SimulatedRun simulated = read_simulated_run(where, options.overrides);
  require_valid(simulated.run.violations(), where);
  const int gpus = simulated.run.parallel.world_size() * simulated.run.tensor_parallel;
  if (const int planned = simulated.run.plan.gpus; planned > 0 && planned != gpus) {
    throw UserError(fmt::format("{}: [parallel] dp x pp x cp x tp = {}, [plan] gpus = {}: degrees must multiply to it",
                                where, gpus, planned));
  }
  require_joined(simulated, gpus);
  std::vector<std::string> extrapolated = extrapolated_shapes(simulated, simulated.run, options.extrapolate);
  SimulationSubject subject{.run = std::move(simulated.run),
                            .documents = std::move(simulated.documents),
                            .cost = nullptr,
                            .cluster = std::move(simulated.cluster),
                            .extrapolated = std::move(extrapolated)};
  RunSpec& run = subject.run;
  if (simulated.device) {
    subject.cost =
        make_cluster_cost(*simulated.device, *subject.cluster, run.model, subject.mesh(), run.overlap_tp, run.software);
    subject.peak_flops_per_second = simulated.device->peak_flops_per_second;
  } else if (!run.profile.empty()) {
    if (run.tensor_parallel > 1) {
      throw UserError(where + ": [parallel] tp: a measured profile is of one rank; name a [cluster] file");
    }
    subject.cost = make_profile_cost(read_hardware_profile(run.profile), run.model);
  } else {
    throw UserError(where +
                    ": neither [cluster] file nor [cost] profile says how long anything takes; name one, such as " +
                    "profiles/clusters/h100_dgx.toml");
  }
  if (run.packing.tune_queues) tune_run_queues(run, *subject.cost, documents_of(subject));
  return subject;
}

// The steps of a simulation, planned or from a file.
class Steps {
 public:
  Steps(const SimulateOptions& options, const SimulationSubject& subject, const PredictionOptions& prediction)
      : subject_(subject), prediction_(prediction) {
    if (options.plan.empty()) {
      stream_.emplace(subject.run, *subject.cost, documents_of(subject), prediction);
      return;
    }
    const RunSpec& run = subject.run;
    plans_ = read_step_plans(options.plan);
    for (const StepPlan& plan : plans_) {
      if (plan.dims == run.parallel && plan.stage_layers == run.layers_by_stage()) continue;
      throw UserError(fmt::format("{}: step {}: is for {} and {} stages, the run has {} and {}", options.plan,
                                  plan.step, to_string(plan.dims), plan.stage_layers.size(), to_string(run.parallel),
                                  run.layers_by_stage().size()));
    }
  }

  std::optional<PlannedStep> next() {
    if (stream_) return done_++ < subject_.run.training.steps ? stream_->next() : std::nullopt;
    if (at_ == plans_.size()) return std::nullopt;
    PlannedStep step;
    step.plan = std::move(plans_[at_++]);
    predict_step(step, subject_.run, *subject_.cost, prediction_);
    return step;
  }

  PackerState state() const { return stream_ ? stream_->state() : PackerState{}; }

 private:
  const SimulationSubject& subject_;
  const PredictionOptions& prediction_;
  std::optional<StepStream> stream_;
  std::int64_t done_ = 0;
  std::vector<StepPlan> plans_;
  std::size_t at_ = 0;
};

void write_trace(const std::string& path, const Timeline& timeline, const std::string& device) {
  AtomicFile file(path);
  write_chrome_trace(timeline, {.rank = {}, .device = device}, [&](std::string_view text) { file.write(text); });
  file.commit();
}

void run(const SimulateOptions& options) {
  const SimulationSubject subject = read_subject(options);
  PredictionOptions prediction{.timelines = !options.trace.empty() || !options.out.empty()};
  if (subject.cluster) prediction.network_axes = axes_across_nodes(*subject.cluster, subject.mesh());
  if (options.share_links) {
    if (!subject.cluster) throw UserError("--share-links: links are a cluster's; name a [cluster] file");
    if (subject.run.parallel.world_size() > kMostSharingRanks) {
      throw UserError(fmt::format("--share-links: for at most {} ranks beside tp, the run has {}", kMostSharingRanks,
                                  subject.run.parallel.world_size()));
    }
    prediction.timelines = true;
    prediction.shared_links = link_tiers(*subject.cluster, subject.mesh());
  }
  if (!subject.run.storage.background_checkpoints) {
    prediction.checkpoint_seconds = checkpoint_seconds(subject.goodput());
  }
  SimulationFigures figures(subject);
  std::optional<SimulatedFolder> folder;
  if (!options.out.empty()) folder.emplace(options.out, subject);
  Timeline all{.source = "predicted", .dims = subject.run.parallel, .spans = {}};
  const auto begin = Clock::now();
  Steps steps(options, subject, prediction);
  std::int64_t skipped = 0;
  while (const std::optional<PlannedStep> step = steps.next()) {
    if (skipped < options.skip_steps) {
      ++skipped;
      continue;
    }
    figures.add(step->plan, step->fast);
    if (folder) folder->add(*step);
    if (!options.trace.empty()) {
      all.spans.insert(all.spans.end(), step->predicted.spans.begin(), step->predicted.spans.end());
    }
  }
  if (figures.steps() == 0) {
    throw UserError(options.run_toml +
                    (skipped > 0 ? ": --skip-steps leaves no step" : ": the workload holds no step"));
  }
  figures.play_failures();
  figures.simulation_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (!options.trace.empty()) write_trace(options.trace, all, subject.cost->name());
  if (folder) folder->finish(options.command, steps.state());
  if (options.json) {
    fmt::print("{}\n", figures.to_json().dump(2));
  } else if (!options.quiet) {
    fmt::print("{}", figures.to_text());
    if (!options.trace.empty()) fmt::print("  written       {}\n", options.trace);
    if (folder) {
      fmt::print("  written       {}\n", options.out);
      if (folder->steps_without_timeline() > 0) {
        fmt::print("                the timelines of the last {} steps were left out: too many events\n",
                   folder->steps_without_timeline());
      }
    }
  }
}

}  // namespace

void add_simulate(CLI::App& app, const std::vector<std::string>& arguments) {
  CLI::App* verb = app.add_subcommand("simulate", "Predict a run's steps on a cluster that need not be at hand");
  const auto options = std::make_shared<SimulateOptions>();
  for (const std::string& word : arguments) options->command += (options->command.empty() ? "" : " ") + word;
  verb->add_option("run", options->run_toml, "RUN.toml with a [cluster] file, or a [cost] profile of this machine")
      ->required()
      ->type_name("RUN.toml");
  verb->add_option("--set", options->overrides, "section.key=value, over the file's")->type_name("KEY=VALUE");
  verb->add_option("--plan", options->plan, "Step plans from a file instead of planned ones, as `train` writes them")
      ->type_name("FILE");
  verb->add_option("--skip-steps", options->skip_steps, "Leave so many first steps out, in which packers fill up")
      ->check(CLI::NonNegativeNumber);
  verb->add_flag("--share-links", options->share_links,
                 "Transfers that overlap on a link slow each other down (slower to simulate; at most 1,024 ranks)");
  verb->add_flag("--extrapolate", options->extrapolate,
                 "Take the nearest rate for shapes far outside those that the device was measured at");
  verb->add_option("--trace", options->trace, "Write the steps as a Chrome trace, for Perfetto")->type_name("FILE");
  verb->add_option("--out", options->out, "Write a run folder, for `report` and `compare`")->type_name("FOLDER");
  verb->add_flag("--json", options->json, "One JSON object on standard output");
  verb->add_flag("--quiet", options->quiet, "No text on standard output");
  verb->footer(
      "Example: Llama 3 70B at 128K on 512 H100s, real document lengths\n"
      "  ballast simulate recipes/simulate/llama3_70b.toml");
  verb->callback([options] { run(*options); });
}

}  // namespace ballast::cli
