// ballast simulate: what a run would do on a cluster that need not be at hand.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "ballast/base/error.h"
#include "ballast/cost/cluster_cost.h"
#include "ballast/cost/memory.h"
#include "ballast/io/atomic_file.h"
#include "ballast/io/chrome_trace.h"
#include "ballast/io/plan_json.h"
#include "ballast/io/profile_json.h"
#include "ballast/packing/balance.h"
#include "ballast/planner/step_stream.h"
#include "ballast/simulate/analysis.h"
#include "ballast/simulate/predict.h"
#include "cli/simulated_run.h"
#include "cli/size_option.h"
#include "cli/verbs.h"

namespace ballast::cli {

namespace {

using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct SimulateOptions {
  std::string run_toml;
  std::vector<std::string> overrides;
  std::string plan;
  std::string trace;
  bool json = false;
  bool quiet = false;
};

struct Subject {
  RunSpec run;
  DocumentLengths documents;
  std::unique_ptr<CostModel> cost;
  std::optional<ClusterSpec> cluster;
  double peak_flops_per_second = 0;  // of a GPU; 0: not known

  ClusterMesh mesh() const {
    return {.dims = run.parallel, .tp = run.tensor_parallel, .order = *parse_mesh_order(run.mapping)};
  }
};

Subject read_subject(const SimulateOptions& options) {
  const std::string& where = options.run_toml;
  SimulatedRun simulated = read_simulated_run(where, options.overrides);
  Subject subject{.run = std::move(simulated.run),
                  .documents = std::move(simulated.documents),
                  .cost = nullptr,
                  .cluster = std::move(simulated.cluster)};
  const RunSpec& run = subject.run;
  require_valid(run.violations(), where);
  if (simulated.device) {
    subject.cost = make_cluster_cost(*simulated.device, *subject.cluster, run.model, subject.mesh(), run.overlap_tp);
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
  return subject;
}

// Multiply-adds count two; attention counts the pairs that the mask leaves; backward is twice forward; what is
// recomputed does not count.
double model_flops(const RunSpec& run, const StepPlan& plan) {
  const ModelSpec& model = run.model;
  const double a_token = 2.0 * (static_cast<double>(model.num_layers) * static_cast<double>(model.layer_parameters()) +
                                static_cast<double>(model.hidden_dim) * model.vocab_size);
  double pairs = 0;
  for (const auto& pipeline : plan.micro_batches) {
    for (const MicroBatch& micro_batch : pipeline) {
      for (const Document& document : micro_batch.documents) {
        const auto length = static_cast<double>(document.length);
        pairs += length * (length + 1) / 2;
      }
    }
  }
  return 3 * (a_token * static_cast<double>(plan.num_tokens()) +
              4.0 * pairs * model.num_heads * model.head_dim * model.num_layers);
}

struct Figures {
  std::int64_t steps = 0;
  Seconds seconds = 0;
  Seconds slowest_step = 0;
  double tokens = 0;
  double flops = 0;
  double bubble = 0;  // sums over steps
  double exposed = 0;
  double imbalance = 0;
  std::int64_t events = 0;
  Seconds simulation_seconds = 0;
  MemoryParts memory;
  int memory_rank = 0;             // pipeline rank that holds most
  Tokens longest_micro_batch = 0;  // that fits on every rank; where the cluster is known
  std::map<SpanKind, Seconds> seconds_by_kind;
};

void add_step(Figures& figures, const Subject& subject, const StepPlan& plan, const FastStep& step) {
  const StepTime& time = step.time;
  ++figures.steps;
  figures.seconds += time.step_seconds();
  figures.slowest_step = std::max(figures.slowest_step, time.step_seconds());
  figures.tokens += static_cast<double>(plan.num_tokens());
  figures.flops += model_flops(subject.run, plan);
  figures.bubble += time.bubble_share;
  figures.exposed += time.exposed_communication_share();
  figures.imbalance += time.imbalance();
  figures.events += step.events;
  for (const auto& [kind, seconds] : time.seconds_by_kind) figures.seconds_by_kind[kind] += seconds;
  if (figures.steps > 1) return;
  for (int pp = 0; pp < subject.run.parallel.pp; ++pp) {
    const MemoryParts parts = memory_of_rank(subject.run, plan.schedule, pp);
    if (subject.cluster) {
      const Tokens longest = longest_micro_batch(subject.run, plan.schedule, pp, subject.cluster->memory_bytes);
      figures.longest_micro_batch = pp == 0 ? longest : std::min(figures.longest_micro_batch, longest);
    }
    if (parts.total() > figures.memory.total()) {
      figures.memory = parts;
      figures.memory_rank = pp;
    }
  }
}

Figures simulate(const SimulateOptions& options, const Subject& subject) {
  const RunSpec& run = subject.run;
  Figures figures;
  Timeline all{.source = "predicted", .dims = run.parallel, .spans = {}};
  const auto begin = Clock::now();
  const bool timelines = !options.trace.empty();
  PredictionOptions prediction{.timelines = timelines};
  if (subject.cluster) prediction.network_axes = axes_across_nodes(*subject.cluster, subject.mesh());
  const auto take = [&](const StepPlan& plan, const FastStep& step, const Timeline& timeline) {
    add_step(figures, subject, plan, step);
    all.spans.insert(all.spans.end(), timeline.spans.begin(), timeline.spans.end());
  };
  if (!options.plan.empty()) {
    for (const StepPlan& plan : read_step_plans(options.plan)) {
      if (plan.dims != run.parallel || plan.stage_layers != run.layers_by_stage()) {
        throw UserError(fmt::format("{}: step {}: is for {} and {} stages, the run has {} and {}", options.plan,
                                    plan.step, to_string(plan.dims), plan.stage_layers.size(), to_string(run.parallel),
                                    run.layers_by_stage().size()));
      }
      ProgramSettings settings = program_settings(run);
      settings.network_axes = prediction.network_axes;
      take(plan, fast_step(plan, run.model, *subject.cost, settings),
           timelines ? predict(plan, run.model, *subject.cost, settings) : Timeline{});
    }
  } else {
    StepStream stream(
        run, *subject.cost,
        {subject.documents.lengths,
         subject.documents.domains,
         {.shuffle = run.shuffle, .seed = run.seed, .num_epochs = run.epochs, .num_documents = run.documents}},
        prediction);
    while (figures.steps < run.training.steps) {
      std::optional<PlannedStep> step = stream.next();
      if (!step) break;
      take(step->plan, step->fast, step->predicted);
    }
  }
  figures.simulation_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (figures.steps == 0) throw UserError(options.run_toml + ": the workload holds no step");
  if (!options.trace.empty()) {
    AtomicFile file(options.trace);
    write_chrome_trace(all, {.rank = {}, .device = subject.cost->name()},
                       [&](std::string_view text) { file.write(text); });
    file.commit();
  }
  return figures;
}

ordered_json to_json(const Subject& subject, const Figures& f) {
  const RunSpec& run = subject.run;
  const int gpus = run.parallel.world_size() * run.tensor_parallel;
  const double steps = static_cast<double>(f.steps);
  const double flops_per_gpu = f.flops / f.seconds / gpus;
  ordered_json by_part;
  for (const auto& [name, bytes] : f.memory.named()) by_part[name] = bytes;
  Seconds all = 0;
  for (const auto& [kind, seconds] : f.seconds_by_kind) all += seconds;
  ordered_json shares;
  for (const auto& [kind, seconds] : f.seconds_by_kind) shares[to_string(kind)] = seconds / all;
  ordered_json result{
      {"predicted_by", subject.cost->name()},
      {"gpus", gpus},
      {"degrees",
       {{"dp", run.parallel.dp}, {"pp", run.parallel.pp}, {"cp", run.parallel.cp}, {"tp", run.tensor_parallel}}},
      {"steps", f.steps},
      {"step_seconds", {{"mean", f.seconds / steps}, {"max", f.slowest_step}}},
      {"step_tokens_mean", f.tokens / steps},
      {"tokens_per_second", f.tokens / f.seconds},
      {"tflops_per_gpu", flops_per_gpu / 1e12}};
  if (subject.peak_flops_per_second > 0) result["mfu"] = flops_per_gpu / subject.peak_flops_per_second;
  result.update({{"bubble_share", f.bubble / steps},
                 {"exposed_communication_share", f.exposed / steps},
                 {"compute", {{"max_over_mean", f.imbalance / steps}}},
                 {"busy_share_by_kind", std::move(shares)},
                 {"peak_memory_bytes",
                  {{"max", f.memory.total()}, {"pipeline_rank", f.memory_rank}, {"by_part", std::move(by_part)}}}});
  if (subject.cluster) {
    result["memory_headroom_bytes"] = subject.cluster->memory_bytes - f.memory.total();
    result["longest_micro_batch_tokens"] = f.longest_micro_batch;
    result["fits"] = subject.cluster->memory_bytes >= f.memory.total();
  }
  result["events"] = f.events;
  result["simulation_seconds"] = f.simulation_seconds;
  return result;
}

std::string memory_text(Bytes bytes) {
  const auto value = static_cast<double>(bytes);
  return bytes < (1 << 30) ? fmt::format("{:.0f} MiB", value / (1 << 20))
                           : fmt::format("{:.1f} GiB", value / (1 << 30));
}

void print(const SimulateOptions& options, const Subject& subject, const Figures& f) {
  const ordered_json j = to_json(subject, f);
  const RunSpec& run = subject.run;
  fmt::print("{} GPUs: tp {} x {}; predicted by {}\n", grouped(j["gpus"].get<int>()), run.tensor_parallel,
             to_string(run.parallel), subject.cost->name());
  fmt::print("  step          {:.3f} s on average, {:.3f} s at most, over {} steps of {} tokens\n",
             f.seconds / static_cast<double>(f.steps), f.slowest_step, f.steps,
             grouped(static_cast<Tokens>(f.tokens / static_cast<double>(f.steps))));
  fmt::print("  speed         {} tokens a second, {:.3g} TFLOPS a GPU{}\n",
             grouped(static_cast<Tokens>(f.tokens / f.seconds)), j["tflops_per_gpu"].get<double>(),
             j.contains("mfu") ? fmt::format(", MFU {:.1f}%", 100 * j["mfu"].get<double>()) : "");
  fmt::print("  ranks         {:.3f} slowest over mean work; {:.1f}% bubble, {:.1f}% exposed communication\n",
             f.imbalance / static_cast<double>(f.steps), 100 * f.bubble / static_cast<double>(f.steps),
             100 * f.exposed / static_cast<double>(f.steps));
  std::string parts;
  for (const auto& [name, bytes] : f.memory.named()) {
    if (bytes > 0) parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name, memory_text(bytes));
  }
  fmt::print("  memory        {} on pipeline rank {} ({})\n", memory_text(f.memory.total()), f.memory_rank, parts);
  if (subject.cluster) {
    const Bytes headroom = subject.cluster->memory_bytes - f.memory.total();
    fmt::print("                {}\n", headroom >= 0
                                           ? fmt::format("fits, {} to spare; max_tokens of up to {} would fit",
                                                         memory_text(headroom), grouped(f.longest_micro_batch))
                                           : fmt::format("DOES NOT FIT: {} too much", memory_text(-headroom)));
  }
  fmt::print("  simulated     {} events in {:.2f} s\n", grouped(f.events), f.simulation_seconds);
  if (!options.trace.empty()) fmt::print("  written       {}\n", options.trace);
}

void run(const SimulateOptions& options) {
  const Subject subject = read_subject(options);
  const Figures figures = simulate(options, subject);
  if (options.json) {
    fmt::print("{}\n", to_json(subject, figures).dump(2));
  } else if (!options.quiet) {
    print(options, subject, figures);
  }
}

}  // namespace

void add_simulate(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("simulate", "Predict a run's steps on a cluster that need not be at hand");
  const auto options = std::make_shared<SimulateOptions>();
  verb->add_option("run", options->run_toml, "RUN.toml with a [cluster] file, or a [cost] profile of this machine")
      ->required()
      ->type_name("RUN.toml");
  verb->add_option("--set", options->overrides, "section.key=value, over the file's")->type_name("KEY=VALUE");
  verb->add_option("--plan", options->plan, "Step plans from a file instead of planned ones, as `train` writes them")
      ->type_name("FILE");
  verb->add_option("--trace", options->trace, "Write the steps as a Chrome trace, for Perfetto")->type_name("FILE");
  verb->add_flag("--json", options->json, "One JSON object on standard output");
  verb->add_flag("--quiet", options->quiet, "No text on standard output");
  verb->footer(
      "Example: Llama 3 70B at 128K on 512 H100s, real document lengths\n"
      "  ballast simulate recipes/simulate/llama3_70b.toml");
  verb->callback([options] { run(*options); });
}

}  // namespace ballast::cli
