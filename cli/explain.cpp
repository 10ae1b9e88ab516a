// ballast explain: why a layout is what it is. `zones`: from which lengths on a ring hides its messages; `placement`:
// where the documents of one micro-batch go, and what every other sharder would have taken.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "ballast/base/error.h"
#include "ballast/cost/zones.h"
#include "ballast/io/atomic_file.h"
#include "ballast/io/plan_json.h"
#include "cli/cost_option.h"
#include "cli/placement.h"
#include "cli/report_page.h"
#include "cli/size_option.h"
#include "cli/verbs.h"

namespace ballast::cli {

namespace {

using nlohmann::ordered_json;

struct ExplainOptions {
  CostOptions cost;
  int cp = 16;
  bool cp_stated = false;
  std::string longest = "256K";
  std::string lengths;  // of placement
  std::string plan;     // of placement: a plan.jsonl
  std::int64_t step = 0;
  int micro_batch = 0;
  std::string rank_tokens = "0";
  std::string out;  // page
  bool json = false;
  bool quiet = false;
};

std::string from_text(const ordered_json& tokens, Tokens longest) {
  return tokens.is_null() ? fmt::format("no length up to {} tokens", longest)
                          : fmt::format("{} tokens", tokens.get<Tokens>());
}

void say_zones(const ordered_json& zones) {
  fmt::print("one layer, forward and backward; cost: {}\n", zones["cost"].get<std::string>());
  fmt::print("{:>10} {:>14} {:>14} {:>14} {:>14}\n", "length", "attention", "linear", "in a node", "across nodes");
  for (const ordered_json& point : zones["points"]) {
    fmt::print("{:>10} {:>11.3f} ms {:>11.3f} ms {:>11.3f} ms {:>11.3f} ms\n", point["length_tokens"].get<Tokens>(),
               1e3 * point["attention_seconds"].get<double>(), 1e3 * point["linear_seconds"].get<double>(),
               1e3 * point["intra_node_seconds"].get<double>(), 1e3 * point["inter_node_seconds"].get<double>());
  }
  const Tokens longest = zones["longest_tokens"].get<Tokens>();
  fmt::print(
      "a ring of two hides its messages inside a node from {}, across nodes from {}; the longest looked at: {}\n",
      from_text(zones["intra_node_from_tokens"], longest), from_text(zones["inter_node_from_tokens"], longest),
      longest);
}

void write_page(const ExplainOptions& options, const ordered_json& data) {
  if (options.out.empty()) return;
  write_file_atomically(options.out, placement_page("Ballast: where documents go", data));
  if (!options.json && !options.quiet) fmt::print("wrote {}\n", options.out);
}

void explain_zones(const ExplainOptions& options) {
  // An emulated cluster has its links whatever ranks are asked for.
  const bool of_any_ranks = !options.cp_stated && !options.cost.emulate.empty();
  const std::unique_ptr<CostModel> cost = make_cost(options.cost, of_any_ranks ? 1 : options.cp);
  const Tokens longest = size_of_text("--longest", options.longest);
  const ordered_json zones = zones_json(*cost, std::max<Tokens>(longest, 64));
  if (options.json) {
    fmt::print("{}\n", zones.dump(2));
  } else if (!options.quiet) {
    say_zones(zones);
  }
  write_page(options, {{"zones", zones}});
}

std::vector<Tokens> boundaries_of(const ExplainOptions& options) {
  if (!options.lengths.empty()) {
    MicroBatch micro_batch;
    for (const Tokens length : sizes_of_text("--lengths", options.lengths)) {
      micro_batch.documents.push_back({.length = length});
    }
    return micro_batch.cu_seqlens();
  }
  throw UserError("explain placement needs either --plan, a plan.jsonl, or --lengths, such as --lengths 64K,3K,700");
}

ShardPlan plan_of(const ExplainOptions& options) {
  for (const StepPlan& plan : read_step_plans(options.plan)) {
    if (plan.step != options.step) continue;
    const auto& shards = plan.shard_plans.front();
    if (options.micro_batch < 0 || options.micro_batch >= static_cast<int>(shards.size())) {
      throw UserError(
          fmt::format("--micro-batch = {}: step {} has 0 to {}", options.micro_batch, options.step, shards.size() - 1));
    }
    return shards[static_cast<std::size_t>(options.micro_batch)];
  }
  throw UserError(fmt::format("--step = {}: {} does not hold it", options.step, options.plan));
}

// A plan places documents on the nodes of one cluster: on another it is not what a sharder would have made.
void require_same_cluster(const ShardPlan& plan, const CostModel& cost, const ExplainOptions& options) {
  const int ranks = plan.num_ranks();
  if (options.cp_stated && options.cp != ranks) {
    throw UserError(
        fmt::format("--cp = {}: the plan {} is of {} ranks; leave --cp out", options.cp, options.plan, ranks));
  }
  const auto in_a_node = [ranks](int stated) { return stated > 0 ? std::min(stated, ranks) : ranks; };
  const int planned = in_a_node(plan.ranks_per_node);
  const int priced = in_a_node(cost.cp_links().ranks_per_node);
  const std::string& file = options.cost.cluster.empty() ? options.cost.emulate : options.cost.cluster;
  if (file.empty() || plan.exchange != KvExchange::rings || planned == priced) return;
  throw UserError(
      fmt::format("{}: step {} places {} ranks on nodes of {}, the nodes of {} take {} of them: name the "
                  "cluster that the plan is of",
                  options.plan, options.step, ranks, planned, file, priced));
}

void say_placement(const ordered_json& placement, const std::string& why) {
  fmt::print("{} over {} ranks: {} documents, {} tokens: {} local, {} in a node, {} across nodes; {} tokens moved\n",
             placement["sharding"].get<std::string>(), placement["ranks"].size(),
             placement["documents"].get<std::int64_t>(), placement["tokens"].get<Tokens>(),
             placement["queues"]["local"].get<std::int64_t>(), placement["queues"]["intra_node"].get<std::int64_t>(),
             placement["queues"]["inter_node"].get<std::int64_t>(), placement["moved_tokens"].get<Tokens>());
  fmt::print("{:>6} {:>6} {:>10} {:>10} {:>12} {:>12} {:>12} {:>12} {:>12}\n", "rank", "node", "tokens", "linear",
             "across ms", "in node ms", "local ms", "waits ms", "linear ms");
  for (const ordered_json& rank : placement["ranks"]) {
    std::map<std::string, double> seconds;
    for (const ordered_json& part : rank["forward"]) {
      seconds[part[0].get<std::string>()] += part[2].get<double>() - part[1].get<double>();
    }
    fmt::print("{:>6} {:>6} {:>10} {:>10} {:>12.3f} {:>12.3f} {:>12.3f} {:>12.3f} {:>12.3f}\n", rank["rank"].get<int>(),
               rank["node"].get<int>(), rank["tokens"].get<Tokens>(), rank["linear_tokens"].get<Tokens>(),
               1e3 * seconds["inter_node"], 1e3 * seconds["intra_node"], 1e3 * seconds["local"],
               1e3 * (seconds["wait"] + seconds["move"]), 1e3 * seconds["linear"]);
  }
  fmt::print("(one layer, forward; linear: tokens in linear modules)\n{}\n", why);
}

void explain_placement(const ExplainOptions& options) {
  if (options.plan.empty() == options.lengths.empty()) boundaries_of({});
  std::optional<ShardPlan> stated;
  if (!options.plan.empty()) stated = plan_of(options);
  const int cp = stated ? stated->num_ranks() : options.cp;
  if (cp < 1) throw UserError(fmt::format("--cp = {}: must be 1 or more ranks", cp));
  const std::unique_ptr<CostModel> cost = make_cost(options.cost, cp);
  if (stated) require_same_cluster(*stated, *cost, options);
  const std::vector<Tokens> cu_seqlens = stated ? stated->cu_seqlens : boundaries_of(options);
  const PlacementOptions placing{.rank_tokens = size_of_text("--rank-tokens", options.rank_tokens)};
  std::vector<SharderTrial> trials = try_all_sharders(cu_seqlens, cp, *cost, placing);
  // One rank: all sharders are the same, and the one that was tried was not priced.
  if (cp == 1) trials.front().slowest = predict_slowest_layer(trials.front().plan, *cost);
  const Seconds even_share = layer_even_share(cu_seqlens, cp, *cost);
  const ShardPlan plan = stated ? *stated : fastest(trials).plan;
  Tokens longest = 64;
  for (std::size_t d = 0; d + 1 < cu_seqlens.size(); ++d)
    longest = std::max(longest, cu_seqlens[d + 1] - cu_seqlens[d]);
  const ordered_json data{{"zones", zones_json(*cost, longest)},
                          {"placement", placement_json(plan, *cost)},
                          {"trials", trials_json(trials, even_share)},
                          {"why", why_chosen(trials, even_share)}};
  if (options.json) {
    fmt::print("{}\n", data.dump(2));
  } else if (!options.quiet) {
    say_placement(data["placement"], data["why"].get<std::string>());
  }
  write_page(options, data);
}

}  // namespace

void add_explain(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("explain", "Why a layout is what it is");
  verb->require_subcommand(1);
  const auto options = std::make_shared<ExplainOptions>();
  ExplainOptions& o = *options;
  CLI::App* zones =
      verb->add_subcommand("zones", "From which lengths on a sequence may be cut over a node, over nodes");
  CLI::App* placement = verb->add_subcommand("placement", "Where the documents of one micro-batch go, and why there");
  for (CLI::App* sub : {zones, placement}) {
    add_cost_options(*sub, o.cost);
    sub->add_option("--cp", o.cp, "Context parallel ranks")->type_name("C")->capture_default_str();
    sub->add_option("--out", o.out, "Draw it: one self-contained page")->type_name("FILE.html");
    sub->add_flag("--json", o.json, "One JSON object on standard output");
    sub->add_flag("--quiet", o.quiet, "No text on standard output");
  }
  zones->add_option("--longest", o.longest, "Longest length asked for")->type_name("L")->capture_default_str();
  zones->footer(
      "Example:\n"
      "  ballast explain zones --cluster profiles/clusters/zeppelin_a.toml --model llama-7b --out zones.html");
  placement->add_option("--lengths", o.lengths, "One micro-batch of documents of these lengths")->type_name("L,L,...");
  placement->add_option("--plan", o.plan, "A plan.jsonl, instead of lengths")->type_name("FILE");
  placement->add_option("--step", o.step, "Of the plan")->capture_default_str();
  placement->add_option("--micro-batch", o.micro_batch, "Of the step")->capture_default_str();
  placement->add_option("--rank-tokens", o.rank_tokens, "Most tokens of a rank in attention; 0: twice an even share")
      ->type_name("L");
  placement->footer(
      "Example: one long and many short documents over 2 nodes of 8 GPUs\n"
      "  ballast explain placement --lengths 64K,9K,3K,1K,1K,700,500 --cp 16 \\\n"
      "      --cluster profiles/clusters/zeppelin_a.toml --model llama-7b --out placement.html");
  zones->callback([options, zones] {
    options->cp_stated = zones->count("--cp") > 0;
    explain_zones(*options);
  });
  placement->callback([options, placement] {
    options->cp_stated = placement->count("--cp") > 0;
    explain_placement(*options);
  });
}

}  // namespace ballast::cli
