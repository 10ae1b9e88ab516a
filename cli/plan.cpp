// ballast plan: degrees, schedule, sharding and the rest of a run, chosen by simulated time on the user's documents.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "ballast/base/error.h"
#include "ballast/planner/plan_run.h"
#include "cli/simulated_run.h"
#include "cli/size_option.h"
#include "cli/verbs.h"

namespace ballast::cli {

namespace {

using nlohmann::ordered_json;

struct PlanOptions {
  std::string run_toml;
  std::vector<std::string> overrides;
  bool json = false;
  bool quiet = false;
};

RunSubject read_subject(const PlanOptions& options) {
  SimulatedRun simulated = read_simulated_run(options.run_toml, options.overrides);
  if (!simulated.cluster) {
    throw UserError(options.run_toml + ": [cluster] file is missing: name one, such as profiles/clusters/h100_dgx.toml");
  }
  if (simulated.run.plan.gpus < 1) {
    throw UserError(options.run_toml + ": [plan] gpus is missing: how many GPUs to plan for");
  }
  return {.run = std::move(simulated.run),
          .cluster = std::move(*simulated.cluster),
          .device = std::move(*simulated.device),
          .lengths = std::move(simulated.documents.lengths),
          .domains = std::move(simulated.documents.domains)};
}

ordered_json to_json(const RankedCandidate& candidate) {
  const RunChoice& c = candidate.choice;
  return {{"degrees", {{"dp", c.dims.dp}, {"pp", c.dims.pp}, {"cp", c.dims.cp}, {"tp", c.tp}}},
          {"mapping", to_string(c.mapping)},
          {"schedule",
           {{"name", c.schedule.name},
            {"virtual_stages", c.schedule.virtual_stages},
            {"round_size", c.schedule.round_size}}},
          {"zero", c.zero},
          {"recompute", c.recompute},
          {"windows_per_micro_batch", c.windows},
          {"packer", c.packer},
          {"sharding", c.sharding},
          {"step_seconds", candidate.step_seconds},
          {"tokens_per_second", candidate.tokens_per_second},
          {"bubble_share", candidate.bubble_share},
          {"exposed_communication_share", candidate.exposed_communication_share},
          {"compute", {{"max_over_mean", candidate.imbalance}}},
          {"peak_memory_bytes", candidate.peak_memory_bytes}};
}

void run(const PlanOptions& options) {
  const RunSubject subject = read_subject(options);
  const RunPlanning planning = plan_run(subject);
  ordered_json candidates = ordered_json::array();
  for (const RankedCandidate& candidate : planning.ranked) candidates.push_back(to_json(candidate));
  ordered_json by_reason;
  for (const auto& [reason, count] : planning.rejected.by_reason) by_reason[reason] = count;
  const ordered_json result{{"considered", planning.considered},
                            {"simulated", planning.simulated.size()},
                            {"candidates", std::move(candidates)},
                            {"rejected", {{"count", planning.rejected.count}, {"by_reason", std::move(by_reason)}}},
                            {"planning_seconds", planning.planning_seconds}};
  fmt::print("{}\n", result.dump(2));
}

}  // namespace

void add_plan(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("plan", "Choose degrees, schedule and sharding by simulated time");
  const auto options = std::make_shared<PlanOptions>();
  verb->add_option("run", options->run_toml, "RUN.toml with a [cluster] file and [plan] gpus")
      ->required()
      ->type_name("RUN.toml");
  verb->add_option("--set", options->overrides, "section.key=value, over the file's")->type_name("KEY=VALUE");
  verb->add_flag("--json", options->json, "One JSON object on standard output");
  verb->add_flag("--quiet", options->quiet, "No text on standard output");
  verb->footer(
      "Example: Llama 3 70B at 128K on 1,024 H100s, real document lengths\n"
      "  ballast plan recipes/plan/llama3_70b.toml");
  verb->callback([options] { run(*options); });
}

}  // namespace ballast::cli
