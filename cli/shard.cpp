// ballast shard: shards packed micro-batches over context parallel ranks and says how even the ranks are.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "ballast/base/error.h"
#include "ballast/io/plan_json.h"
#include "ballast/sharding/sharder.h"
#include "cli/cost_option.h"
#include "cli/size_option.h"
#include "cli/verbs.h"

namespace ballast::cli {

namespace {

using nlohmann::ordered_json;

struct ShardOptions {
  std::string packed;
  std::string lengths;
  int cp = 0;
  std::string sharding;
  CostOptions cost;
  bool json = false;
  bool quiet = false;
};

// Of one quantity over the ranks, summed over micro-batches: every micro-batch waits for its own slowest rank.
struct OverRanks {
  double max = 0;
  double mean = 0;

  void add(const std::vector<double>& of_ranks) {
    double sum = 0;
    for (const double value : of_ranks) sum += value;
    max += *std::max_element(of_ranks.begin(), of_ranks.end());
    mean += sum / static_cast<double>(of_ranks.size());
  }
  double max_over_mean() const { return mean > 0 ? max / mean : 1; }
};

struct StrategyFigures {
  OverRanks tokens, attention_pairs, predicted_seconds;
  std::map<std::string, std::int64_t> made_by;  // micro-batches by the strategy that sharded them

  void add(const ShardPlan& plan, const CostModel& cost) {
    std::vector<double> tokens_of;
    std::vector<double> pairs_of;
    for (int rank = 0; rank < plan.num_ranks(); ++rank) {
      tokens_of.push_back(static_cast<double>(plan.num_tokens(rank)));
      double pairs = 0;
      for (const AttentionBlock& block : plan.attention_blocks(rank))
        pairs += static_cast<double>(ballast::attention_pairs(block));
      pairs_of.push_back(pairs);
    }
    tokens.add(tokens_of);
    attention_pairs.add(pairs_of);
    predicted_seconds.add(predict_attention(plan, cost));
    ++made_by[plan.sharding];
  }
};

std::string underscored(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::vector<std::vector<Tokens>> read_micro_batches(const ShardOptions& options) {
  if (options.packed.empty() == options.lengths.empty()) {
    throw UserError("shard needs either a file of packed steps or --lengths, such as --lengths 7,4096,3");
  }
  std::vector<std::vector<Tokens>> cu_seqlens;
  if (!options.lengths.empty()) {
    MicroBatch micro_batch;
    for (const Tokens length : sizes_of_text("--lengths", options.lengths))
      micro_batch.documents.push_back({.length = length});
    cu_seqlens.push_back(micro_batch.cu_seqlens());
    return cu_seqlens;
  }
  for (const PackedStep& step : read_packed_steps(options.packed == "-" ? "/dev/stdin" : options.packed)) {
    for (const MicroBatch& micro_batch : step.micro_batches) cu_seqlens.push_back(micro_batch.cu_seqlens());
  }
  return cu_seqlens;
}

std::vector<std::string> strategies_of(const ShardOptions& options) {
  const std::vector<std::string> names = sharding_names();
  // Those that deal the same tokens to every rank; what places documents is asked for by name, or compared by `auto`
  // and `ballast explain placement`.
  if (options.sharding == "all") return gathering_sharding_names();
  if (std::find(names.begin(), names.end(), options.sharding) != names.end()) return {options.sharding};
  std::vector<std::string> allowed = names;
  allowed.push_back("all");
  const std::string near = nearest_name(options.sharding, allowed);
  throw UserError("--sharding = " + options.sharding + ": must be one of " + join(allowed) +
                  (near.empty() ? "" : "; did you mean " + near + "?"));
}

// Strategy that shards most micro-batches under the last, most able strategy asked for; and the reason in words.
std::pair<std::string, std::string> choice(const std::map<std::string, StrategyFigures>& figures,
                                           const std::string& last) {
  const StrategyFigures& chosen = figures.at(last);
  const auto most = std::max_element(chosen.made_by.begin(), chosen.made_by.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (last != "adaptive" && last != "hybrid" && last != "auto") return {last, "it was asked for"};
  std::vector<std::string> shares;
  for (const auto& [name, count] : chosen.made_by) shares.push_back(fmt::format("{} for {}", name, count));
  std::string why = fmt::format(
      "{} takes the strategy whose slowest rank is predicted fastest, per_sequence on a tie: {} of {} micro-batches",
      last, join(shares), [&] {
        std::int64_t all = 0;
        for (const auto& [n, c] : chosen.made_by) all += c;
        return all;
      }());
  if (figures.count("per_sequence") > 0) {
    std::vector<std::string> sums;
    for (const auto& [name, f] : figures) sums.push_back(fmt::format("{:.6g} {}", f.predicted_seconds.max, name));
    why += "; slowest ranks add up to " + join(sums);
  }
  return {most->first, why};
}

void run(const ShardOptions& options) {
  if (options.cp < 1) throw UserError(fmt::format("--cp = {}: must be 1 or more ranks", options.cp));
  const std::vector<std::string> names = strategies_of(options);
  const std::unique_ptr<CostModel> cost = make_cost(options.cost, options.cp);
  const std::vector<std::vector<Tokens>> micro_batches = read_micro_batches(options);

  std::map<std::string, StrategyFigures> figures;
  for (const std::vector<Tokens>& cu_seqlens : micro_batches) {
    for (const std::string& name : names) {
      figures[underscored(name)].add(make_shard_plan(name, cu_seqlens, options.cp, *cost), *cost);
    }
  }
  if (figures.empty()) throw UserError(options.packed + ": holds no micro-batch");
  const auto [chosen, why] = choice(figures, underscored(names.back()));

  if (options.json) {
    ordered_json strategies;
    for (const std::string& name : names) {
      const StrategyFigures& f = figures.at(underscored(name));
      strategies[underscored(name)] = {
          {"tokens", {{"max_over_mean", f.tokens.max_over_mean()}}},
          {"attention_pairs", {{"max_over_mean", f.attention_pairs.max_over_mean()}}},
          {"predicted_seconds", {{"max", f.predicted_seconds.max}, {"mean", f.predicted_seconds.mean}}},
          {"imbalance", f.predicted_seconds.max_over_mean()}};
    }
    const ordered_json result{{"cp", options.cp},     {"micro_batches", micro_batches.size()},
                              {"cost", cost->name()}, {"strategies", std::move(strategies)},
                              {"chosen", chosen},     {"why", why}};
    fmt::print("{}\n", result.dump(2));
  } else if (!options.quiet) {
    fmt::print("{} micro-batch{} over {} ranks; predicted by cost {}\n", micro_batches.size(),
               micro_batches.size() == 1 ? "" : "es", options.cp, cost->name());
    fmt::print("  {:<13} {:>16} {:>16} {:>20}\n", "", "tokens", "attention pairs", "predicted slowest");
    for (const std::string& name : names) {
      const StrategyFigures& f = figures.at(underscored(name));
      fmt::print("  {:<13} {:>16.4f} {:>16.4f} {:>20.6g}\n", underscored(name), f.tokens.max_over_mean(),
                 f.attention_pairs.max_over_mean(), f.predicted_seconds.max);
    }
    fmt::print("  (tokens and pairs: slowest rank over the mean; 1 is perfect)\n  chosen: {}: {}\n", chosen, why);
  }
}

}  // namespace

void add_shard(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("shard", "Shards micro-batches over context parallel ranks and says how even they are");
  const auto options = std::make_shared<ShardOptions>();
  ShardOptions& o = *options;
  std::vector<std::string> names = sharding_names();
  names.push_back("all");
  verb->add_option("packed", o.packed, "Packed steps, as `ballast pack --out` writes them, or - for standard input")
      ->type_name("PACKED");
  verb->add_option("--lengths", o.lengths, "One micro-batch of documents of these lengths, instead of a file")
      ->type_name("L,L,...");
  verb->add_option("--cp", o.cp, "Context parallel ranks")->required()->type_name("C");
  verb->add_option("--sharding", o.sharding, join(names))->required()->type_name("NAME");
  add_cost_options(*verb, o.cost);
  verb->add_flag("--json", o.json, "One JSON object on standard output");
  verb->add_flag("--quiet", o.quiet, "No text on standard output");
  verb->footer(
      "Example: one long and two short documents over 4 ranks, every strategy\n"
      "  ballast shard --lengths 60K,3K,1K --cp 4 --sharding all\n"
      "Example: the steps of a packing\n"
      "  ballast shard packed.jsonl --cp 2 --sharding adaptive");
  verb->callback([options] { run(*options); });
}

}  // namespace ballast::cli
