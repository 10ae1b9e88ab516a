// ballast plan: degrees, schedule, sharding and the rest of a run, chosen by simulated time on the user's documents.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "ballast/base/error.h"
#include "ballast/io/atomic_file.h"
#include "ballast/io/run_choice_json.h"
#include "ballast/io/run_folder.h"
#include "ballast/io/run_plan_json.h"
#include "ballast/io/run_toml.h"
#include "ballast/planner/make_run_plan.h"
#include "ballast/planner/transition.h"
#include "cli/plan_placement.h"
#include "cli/report_page.h"
#include "cli/simulated_run.h"
#include "cli/size_option.h"
#include "cli/verbs.h"

namespace ballast::cli {

namespace {

using nlohmann::ordered_json;

struct PlanOptions {
  std::string run_toml;
  std::vector<std::string> overrides;
  std::string out;
  std::string out_run;
  std::string page;
  std::string running;
  std::int64_t steps_left = 0;
  double change_seconds = 0;
  bool extrapolate = false;
  bool json = false;
  bool quiet = false;
};

RunSubject read_subject(const PlanOptions& options) {
  SimulatedRun simulated = read_simulated_run(options.run_toml, options.overrides);
  if (!simulated.cluster) {
    throw UserError(options.run_toml +
                    ": [cluster] file is missing: name one, such as profiles/clusters/h100_dgx.toml");
  }
  const RunSpec& run = simulated.run;
  if (run.plan.gpus < 1) throw UserError(options.run_toml + ": [plan] gpus is missing: how many GPUs to plan for");
  require_joined(simulated, run.plan.gpus);
  // Degrees and schedule are the planner's; what else is stated must hold.
  const RunSpec any = with_choice(run, {});
  require_valid(any.violations(), options.run_toml);
  extrapolated_shapes(simulated, any, options.extrapolate);
  return {.run = std::move(simulated.run),
          .cluster = std::move(*simulated.cluster),
          .device = std::move(*simulated.device),
          .lengths = std::move(simulated.documents.lengths),
          .domains = std::move(simulated.documents.domains)};
}

std::string gib(Bytes bytes) { return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30)); }

ordered_json to_json(const RankedCandidate& candidate) {
  ordered_json value = run_choice_value(candidate.choice);
  value.update({{"step_seconds", candidate.step_seconds},
                {"step_spread", candidate.step_spread},
                {"tokens_per_second", candidate.tokens_per_second},
                {"bubble_share", candidate.bubble_share},
                {"exposed_communication_share", candidate.exposed_communication_share},
                {"compute", {{"max_over_mean", candidate.imbalance}}},
                {"peak_memory_bytes", candidate.peak_memory_bytes}});
  return value;
}

ordered_json to_json(const DegreesVerdict& verdict) {
  ordered_json value{
      {"degrees", {{"dp", verdict.dims.dp}, {"pp", verdict.dims.pp}, {"cp", verdict.dims.cp}, {"tp", verdict.tp}}},
      {"choices", verdict.choices},
      {"fit", verdict.fit}};
  if (verdict.fit == 0) {
    value["verdict"] = "does not fit";
    value["missing_bytes"] = verdict.least_missing_bytes;
  } else {
    value["verdict"] = verdict.simulated ? "simulated" : "bounded";
    value[verdict.simulated ? "tokens_per_second" : "tokens_per_second_at_most"] = verdict.tokens_per_second;
    value["best"] = to_string(verdict.best);
    value["peak_memory_bytes"] = verdict.peak_memory_bytes;
  }
  return value;
}

ordered_json to_json(const RunSubject& subject, const RunPlanning& planning) {
  ordered_json candidates = ordered_json::array();
  for (const RankedCandidate& candidate : planning.ranked) candidates.push_back(to_json(candidate));
  ordered_json by_reason = ordered_json::object();
  for (const auto& [reason, count] : planning.rejected.by_reason) by_reason[reason] = count;
  ordered_json degrees = ordered_json::array();
  for (const DegreesVerdict& verdict : planning.degrees) degrees.push_back(to_json(verdict));
  ordered_json variations = ordered_json::array();
  for (const Variation& variation : planning.variations) {
    variations.push_back({{"what", variation.what},
                          {"tokens_per_second", variation.tokens_per_second},
                          {"missing_bytes", variation.missing_bytes}});
  }
  return {{"gpus", subject.run.plan.gpus},
          {"cluster", subject.cluster.name},
          {"considered", planning.considered},
          {"simulated", planning.simulated.size()},
          {"candidates", std::move(candidates)},
          {"rejected", {{"count", planning.rejected.count}, {"by_reason", std::move(by_reason)}}},
          {"degrees", std::move(degrees)},
          {"variations", std::move(variations)},
          {"planning_seconds", planning.planning_seconds}};
}

// The running plan's measured steps against what the best choice would take for the same tokens, both in this cluster's
// seconds: the prediction is scaled by how the running plan's own predictions came out.
TransitionAnswer judge_transition(const PlanOptions& options, const RankedCandidate& best) {
  const RunFolder running = read_run_folder(options.running, RunParts::figures);
  TransitionQuestion question{
      .running = {}, .proposed = {}, .steps_left = options.steps_left, .change_seconds = options.change_seconds};
  Seconds measured = 0;
  Seconds predicted = 0;
  const std::size_t skip = warm_up_steps(running.metrics.size());
  for (std::size_t i = skip; i < running.metrics.size(); ++i) {
    const StepMetrics& step = running.metrics[i];
    if (!step.predicted_step_seconds) continue;
    measured += step.step_seconds;
    predicted += *step.predicted_step_seconds;
    question.running.push_back(step.step_seconds);
    question.proposed.push_back(static_cast<double>(step.tokens) / best.tokens_per_second);
  }
  const double scale = predicted > 0 ? measured / predicted : 1;
  for (Seconds& seconds : question.proposed) seconds *= scale;
  return decide_transition(question);
}

void print(const PlanOptions& options, const RunSubject& subject, const RunPlanning& planning) {
  const auto reason_count = [&](const char* reason) {
    const auto found = planning.rejected.by_reason.find(reason);
    return found == planning.rejected.by_reason.end() ? std::int64_t{0} : found->second;
  };
  const RankedCandidate& best = planning.ranked.front();
  fmt::print("{} GPUs of {}: {} tokens a second, a step of {} tokens in {:.3f} s (predicted)\n",
             grouped(subject.run.plan.gpus), subject.cluster.name, grouped(static_cast<Tokens>(best.tokens_per_second)),
             grouped(static_cast<Tokens>(best.tokens_per_second * best.step_seconds)), best.step_seconds);
  fmt::print("  {}\n", to_string(best.choice));
  fmt::print("  {} of {} of memory; {:.1f}% bubble, {:.1f}% exposed communication, slowest rank {:.3f} of the mean\n\n",
             gib(best.peak_memory_bytes), gib(subject.cluster.memory_bytes), 100 * best.bubble_share,
             100 * best.exposed_communication_share, best.imbalance);

  fmt::print("{:>4}  {:>12}  {:>9}  {:>7}  {:>10}  {}\n", "", "tokens/s", "step", "to best", "memory", "choice");
  constexpr std::size_t kShown = 8;
  for (std::size_t i = 0; i < std::min(kShown, planning.ranked.size()); ++i) {
    const RankedCandidate& c = planning.ranked[i];
    fmt::print("{:>4}  {:>12}  {:>7.3f} s  {:>6.1f}%  {:>10}  {}\n", i + 1,
               grouped(static_cast<Tokens>(c.tokens_per_second)), c.step_seconds,
               100 * (c.tokens_per_second / best.tokens_per_second - 1), gib(c.peak_memory_bytes), to_string(c.choice));
  }
  fmt::print("\nThe first with one thing changed\n");
  for (const Variation& variation : planning.variations) {
    const double change = variation.tokens_per_second / best.tokens_per_second - 1;
    fmt::print("  {:<38} {:>6.1f}%{}\n", variation.what, 100 * change,
               variation.missing_bytes > 0 ? ", but " + gib(variation.missing_bytes) + " too much memory" : "");
  }
  // Over the steps that all simulated choices have in common.
  const double reference = planning.simulated.front().tokens_per_second;
  fmt::print("\nOther degrees at their best, over the first {} steps\n", subject.run.plan.steps);
  std::size_t shown = 0;
  for (const DegreesVerdict& verdict : planning.degrees) {
    if (verdict.dims == best.choice.dims && verdict.tp == best.choice.tp) continue;
    if (++shown > kShown) break;
    const std::string degrees =
        fmt::format("tp {} cp {} pp {} dp {}", verdict.tp, verdict.dims.cp, verdict.dims.pp, verdict.dims.dp);
    if (verdict.fit == 0) {
      fmt::print("  {:<26} does not fit: {} too much at the least\n", degrees, gib(verdict.least_missing_bytes));
    } else {
      fmt::print("  {:<26} {} {:>6.1f}%{}\n", degrees, verdict.simulated ? "simulated " : "at the most",
                 100 * (verdict.tokens_per_second / reference - 1),
                 verdict.simulated ? "" : ", without a bubble or a transfer between stages");
    }
  }
  fmt::print("\n{} choices in {:.1f} s: {} do not fit in memory, {} cannot be as fast as those ranked, {} simulated\n",
             grouped(planning.considered), planning.planning_seconds, grouped(reason_count(kNoMemoryReason)),
             grouped(reason_count(kBoundedReason)), grouped(static_cast<std::int64_t>(planning.simulated.size())));
  for (const std::string& file : {options.out, options.out_run, options.page}) {
    if (!file.empty()) fmt::print("written  {}\n", file);
  }
}

void write_text(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

// What the page of candidates shows: every simulated choice, of each other degrees the best, where documents go.
ordered_json page_data(const PlanOptions& options, const RunSubject& subject, const RunPlanning& planning) {
  ordered_json data = to_json(subject, planning);
  data["run_toml"] = options.run_toml;
  data["memory_bytes"] = subject.cluster.memory_bytes;
  data["predicted_by"] = subject.device.device + ", published rates";
  ordered_json simulated = ordered_json::array();
  for (const RankedCandidate& candidate : planning.simulated) {
    ordered_json value = to_json(candidate);
    value["text"] = to_string(candidate.choice);
    simulated.push_back(std::move(value));
  }
  data["simulated"] = std::move(simulated);
  for (std::size_t i = 0; i < planning.ranked.size(); ++i) {
    data["candidates"][i]["text"] = to_string(planning.ranked[i].choice);
  }
  if (std::optional<ordered_json> placement = placement_of_plan(subject, planning)) {
    data["placement"] = std::move(*placement);
  }
  return data;
}

[[noreturn]] void refuse_infeasible(const RunSubject& subject, const RunPlanning& planning) {
  if (planning.nearest) {
    throw RunError(fmt::format("nothing fits in the {} of a GPU; nearest, {} bytes ({}) too much: {}",
                               gib(subject.cluster.memory_bytes), planning.missing_bytes, gib(planning.missing_bytes),
                               to_string(*planning.nearest)));
  }
  std::string reasons;
  for (const auto& [reason, count] : planning.rejected.by_reason) {
    reasons += (reasons.empty() ? "" : "; ") + reason + " (" + std::to_string(count) + ")";
  }
  throw RunError("no choice of degrees is possible for [plan] gpus = " + std::to_string(subject.run.plan.gpus) + ": " +
                 reasons);
}

void run(const PlanOptions& options) {
  const RunSubject subject = read_subject(options);
  const bool tells = !options.quiet && ::isatty(STDERR_FILENO) == 1;
  const RunPlanning planning = plan_run(subject, [&](std::int64_t dealt_with, double best) {
    if (tells) {
      fmt::print(stderr, "\r{} choices dealt with, best {} tokens a second ", grouped(dealt_with),
                 grouped(static_cast<Tokens>(best)));
    }
  });
  if (tells) fmt::print(stderr, "\r\x1b[K");
  if (planning.ranked.empty()) refuse_infeasible(subject, planning);
  if (!options.out.empty()) write_run_plan(options.out, make_run_plan(subject, planning));
  if (!options.out_run.empty()) {
    RunSpec chosen = with_choice(planning.run, planning.ranked.front().choice);
    chosen.plan = {};
    write_text(options.out_run, to_toml(chosen));
  }
  if (!options.page.empty()) {
    write_text(options.page, plan_page("Ballast: a plan for " + grouped(subject.run.plan.gpus) + " GPUs",
                                       page_data(options, subject, planning)));
  }
  std::optional<TransitionAnswer> transition;
  if (!options.running.empty()) transition = judge_transition(options, planning.ranked.front());
  if (options.json) {
    ordered_json result = to_json(subject, planning);
    if (transition) {
      result["transition"] = {{"change", transition->change},
                              {"saved_a_step_seconds", transition->saved_a_step},
                              {"sure_saved_a_step_seconds", transition->sure_saved_a_step},
                              {"p_value", transition->p_value},
                              {"saved_in_all_seconds", transition->saved_in_all},
                              {"needed_seconds", transition->needed},
                              {"why", transition->why}};
    }
    fmt::print("{}\n", result.dump(2));
  } else if (!options.quiet) {
    print(options, subject, planning);
    if (transition) fmt::print("\nrunning {}: {}\n", options.running, transition->why);
  }
}

}  // namespace

void add_plan(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("plan", "Choose degrees, schedule and sharding by simulated time");
  const auto options = std::make_shared<PlanOptions>();
  verb->add_option("run", options->run_toml, "RUN.toml with a [cluster] file and [plan] gpus")
      ->required()
      ->type_name("RUN.toml");
  verb->add_option("--set", options->overrides, "section.key=value, over the file's")->type_name("KEY=VALUE");
  verb->add_option("--out", options->out, "Write the best as a run plan, JSON")->type_name("FILE");
  verb->add_option("--out-run", options->out_run, "Write the best as a RUN.toml, for `simulate`")->type_name("FILE");
  verb->add_option("--page", options->page,
                   "Write all candidates as a page, time against memory, and where documents go in rings")
      ->type_name("FILE");
  CLI::Option* running =
      verb->add_option("--running", options->running, "Run folder: whether to give its plan up for the best one")
          ->type_name("RUN");
  verb->add_option("--steps-left", options->steps_left, "With --running: steps that the run still has")
      ->check(CLI::PositiveNumber)
      ->needs(running);
  verb->add_option("--change-seconds", options->change_seconds, "With --running: what a change costs, restart included")
      ->check(CLI::NonNegativeNumber)
      ->needs(running);
  verb->add_flag("--extrapolate", options->extrapolate,
                 "Take the nearest rate for shapes far outside those that the device was measured at");
  verb->add_flag("--json", options->json, "One JSON object on standard output");
  verb->add_flag("--quiet", options->quiet, "No text on standard output");
  verb->footer(
      "Example: Llama 3 70B at 128K on 1,024 H100s, real document lengths\n"
      "  ballast plan recipes/plan/llama3_70b.toml --page plan.html");
  verb->callback([options] { run(*options); });
}

}  // namespace ballast::cli
