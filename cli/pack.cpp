// ballast pack: packs a list of document lengths and says how good the packing is.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "ballast/base/error.h"
#include "ballast/io/atomic_file.h"
#include "ballast/io/lengths.h"
#include "ballast/io/plan_json.h"
#include "ballast/packing/balance.h"
#include "ballast/packing/oversize.h"
#include "ballast/packing/packed_stream.h"
#include "ballast/packing/queue_tuning.h"
#include "ballast/workload/document_stream.h"
#include "cli/cost_option.h"
#include "cli/size_option.h"
#include "cli/verbs.h"

namespace ballast::cli {

namespace {

using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct PackOptions {
  std::string lengths;
  PackingSpec spec;
  std::string queues;
  std::string oversize = "truncate";
  CostOptions cost;
  std::optional<std::uint64_t> shuffle;
  std::int64_t skip_steps = 0;
  HistogramSampling sampling;
  std::string out;
  bool json = false;
  bool quiet = false;
};

// Mean and extremes of a figure over steps or micro-batches.
struct Spread {
  double min = 0, max = 0, sum = 0;
  std::int64_t count = 0;

  void add(double value) {
    min = count == 0 ? value : std::min(min, value);
    max = count == 0 ? value : std::max(max, value);
    sum += value;
    ++count;
  }
  double mean() const { return count == 0 ? 0 : sum / static_cast<double>(count); }
};

struct Figures {
  std::int64_t steps = 0;  // all; the rest is without those that --skip-steps leaves out
  Spread imbalance, lower_bound_gap, micro_batch_tokens, step_tokens, held_tokens, packing_seconds;
  std::vector<double> imbalances;  // by step
  TokenDelay delay;
  DomainMix mix;
  PackingCounts counts;
  SolverRecord solver;
};

// The smallest value that at least `share` of them do not exceed.
double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  return values[static_cast<std::size_t>(std::max(1.0, rank)) - 1];
}

ordered_json quantiles_json(const Quantiles& q) {
  return {{"mean", q.mean}, {"p50", q.p50}, {"p99", q.p99}, {"max", q.max}};
}

ordered_json tokens_json(const Spread& spread) {
  return {{"min", static_cast<Tokens>(spread.min)}, {"mean", spread.mean()}, {"max", static_cast<Tokens>(spread.max)}};
}

Oversize parse_oversize(const std::string& text) {
  for (const Oversize policy : {Oversize::truncate, Oversize::split, Oversize::refuse}) {
    if (text == to_string(policy)) return policy;
  }
  const std::string near = nearest_name(text, {"truncate", "split", "refuse"});
  throw UserError("--oversize = " + text + ": must be one of truncate, split, refuse" +
                  (near.empty() ? "" : "; did you mean " + near + "?"));
}

void check(const PackOptions& options) {
  const auto packers = packer_names();
  if (std::find(packers.begin(), packers.end(), options.spec.packer) == packers.end()) {
    const std::string near = nearest_name(options.spec.packer, packers);
    throw UserError("--packer = " + options.spec.packer + ": must be one of " + join(packers) +
                    (near.empty() ? "" : "; did you mean " + near + "?"));
  }
  if (options.skip_steps < 0) throw UserError("--skip-steps must be 0 or more");
  if (options.sampling.documents < 1) throw UserError("--documents must be 1 or more");
}

DocumentStream stream_of(const PackOptions& options, const DocumentLengths& input) {
  return {input.lengths,
          input.domains,
          {.shuffle = options.shuffle.has_value(), .seed = options.shuffle.value_or(0), .num_epochs = 1}};
}

Figures pack(const PackOptions& options, const DocumentLengths& input, const CostModel& cost, AtomicFile* out) {
  DocumentStream documents = stream_of(options, input);
  PackedStream stream(options.spec, cost, [&] { return documents.next(); });
  Figures figures;
  while (true) {
    const Clock::time_point begin = Clock::now();
    const std::optional<PackedStep> step = stream.next();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (!step) break;
    if (out != nullptr) out->write(to_json(*step) + "\n");
    if (figures.steps++ < options.skip_steps) continue;
    figures.imbalances.push_back(imbalance(predicted_work(*step, cost)));
    figures.imbalance.add(figures.imbalances.back());
    figures.lower_bound_gap.add(lower_bound_gap(*step, cost));
    for (const MicroBatch& micro_batch : step->micro_batches) {
      figures.micro_batch_tokens.add(static_cast<double>(micro_batch.num_tokens()));
    }
    figures.step_tokens.add(static_cast<double>(step->num_tokens()));
    figures.held_tokens.add(static_cast<double>(stream.held_tokens()));
    figures.packing_seconds.add(seconds);
    figures.delay.add(*step);
    figures.mix.add(*step);
  }
  figures.counts = stream.counts();
  figures.solver = stream.solver_record();
  if (figures.step_tokens.count == 0) {
    throw UserError(fmt::format("--skip-steps = {} leaves none of the {} steps", options.skip_steps, figures.steps));
  }
  return figures;
}

ordered_json to_json(const PackOptions& options, const DocumentLengths& input, const CostModel& cost,
                     const Figures& f) {
  ordered_json delay = quantiles_json(f.delay.overall());
  for (const auto& [domain, quantiles] : f.delay.by_domain()) {
    delay["by_domain"][input.domain_names[static_cast<std::size_t>(domain)]] = quantiles_json(quantiles);
  }
  ordered_json result{
      {"packer", options.spec.packer},
      {"window_tokens", options.spec.window},
      {"max_tokens", options.spec.most_tokens()},
      {"queues_tokens", options.spec.queues},
      {"cost", cost.name()},
      {"steps", f.steps},
      {"skipped_steps", options.skip_steps},
      {"micro_batches", options.spec.micro_batches},
      {"imbalance", {{"mean", f.imbalance.mean()}, {"p99", quantile(f.imbalances, 0.99)}, {"max", f.imbalance.max}}},
      {"token_delay_steps", std::move(delay)},
      {"domain_mix_apart", f.mix.mean_apart()},
      {"micro_batch_tokens", tokens_json(f.micro_batch_tokens)},
      {"step_tokens", tokens_json(f.step_tokens)},
      {"held_tokens", {{"max", static_cast<Tokens>(f.held_tokens.max)}}},
      {"documents",
       {{"in", f.counts.documents_in},
        {"out", f.counts.documents_out},
        {"held", f.counts.documents_in - f.counts.documents_out},
        {"split", f.counts.split},
        {"truncated", f.counts.truncated},
        {"truncated_tokens", f.counts.truncated_tokens},
        {"refused", 0}}},
      {"packing_seconds", {{"mean", f.packing_seconds.mean()}, {"max", f.packing_seconds.max}}},
      {"lower_bound_gap", f.lower_bound_gap.mean()}};
  if (f.solver.solves > 0) {
    result["solver"] = {{"solves", f.solver.solves},
                        {"proven", f.solver.proven},
                        {"worst_gap", f.solver.worst_gap},
                        {"seconds", {{"mean", f.solver.seconds_mean}, {"max", f.solver.seconds_max}}}};
  }
  if (input.sampled) result["sampled"] = {{"documents", options.sampling.documents}, {"seed", options.sampling.seed}};
  if (!options.out.empty()) result["out"] = options.out;
  return result;
}

std::string to_text(const std::vector<Tokens>& queues) {
  std::string text;
  for (const Tokens threshold : queues) text += (text.empty() ? "" : ", ") + grouped(threshold);
  return queues.empty() ? "no queue" : text;
}

ordered_json to_json(const QueueTuning& tuning) {
  ordered_json frontier = ordered_json::array();
  for (const QueueTrial& trial : tuning.frontier) {
    frontier.push_back(
        {{"queues_tokens", trial.queues}, {"imbalance", trial.imbalance}, {"token_delay_steps", trial.delay_steps}});
  }
  return {{"chosen_queues_tokens", tuning.chosen.queues},
          {"trials", tuning.trials},
          {"sample_steps", tuning.steps},
          {"frontier", std::move(frontier)}};
}

void print(const QueueTuning& tuning) {
  fmt::print("queues tuned on {} steps, {} sets of thresholds; imbalance against delay, none is better in both:\n",
             grouped(tuning.steps), tuning.trials);
  for (const QueueTrial& trial : tuning.frontier) {
    fmt::print("  {} {:.3f} at {:.2f} steps: {}\n", trial.queues == tuning.chosen.queues ? "->" : "  ", trial.imbalance,
               trial.delay_steps, to_text(trial.queues));
  }
}

void print(const PackOptions& options, const DocumentLengths& input, const CostModel& cost, const Figures& f) {
  const PackingSpec& spec = options.spec;
  const Quantiles delay = f.delay.overall();
  fmt::print("{} in windows of {}, {} micro-batches a step; predicted by cost {}\n", spec.packer, grouped(spec.window),
             spec.micro_batches, cost.name());
  if (input.sampled) {
    fmt::print("  sampled      {} documents from a histogram, seed {}\n", grouped(options.sampling.documents),
               options.sampling.seed);
  }
  fmt::print("  documents    {} in, {} out, {} cut, {} truncated ({} tokens lost)\n", grouped(f.counts.documents_in),
             grouped(f.counts.documents_out), grouped(f.counts.split), grouped(f.counts.truncated),
             grouped(f.counts.truncated_tokens));
  fmt::print("  steps        {}{}, {} tokens each on average ({} to {})\n", grouped(f.steps),
             options.skip_steps > 0 ? fmt::format(" (figures without the first {})", options.skip_steps) : "",
             grouped(static_cast<Tokens>(f.step_tokens.mean())), grouped(static_cast<Tokens>(f.step_tokens.min)),
             grouped(static_cast<Tokens>(f.step_tokens.max)));
  fmt::print(
      "  imbalance    {:.3f} on average, 99% within {:.3f}, {:.3f} at worst (slowest micro-batch x N / total; 1 is "
      "perfect)\n",
      f.imbalance.mean(), quantile(f.imbalances, 0.99), f.imbalance.max);
  fmt::print("  lower bound  {:.1f}% above it on average\n", 100 * f.lower_bound_gap.mean());
  fmt::print("  token delay  {:.2f} steps on average, 99% within {:.0f}, at most {:.0f}\n", delay.mean, delay.p99,
             delay.max);
  for (const auto& [domain, quantiles] : f.delay.by_domain()) {
    if (input.domain_names.size() < 2) break;
    fmt::print("    {:<10} {:.2f} on average, at most {:.0f}\n", input.domain_names[static_cast<std::size_t>(domain)],
               quantiles.mean, quantiles.max);
  }
  if (input.domain_names.size() > 1) {
    fmt::print("  domains      {:.1f}% of a step's tokens would have to be of another domain to have the mix of all\n",
               100 * f.mix.mean_apart());
  }
  if (f.solver.solves > 0) {
    fmt::print("  solver       {} of {} proven best, the others within {:.2f}% of it; {:.0f} ms each, {:.0f} at most\n",
               f.solver.proven, f.solver.solves, 100 * f.solver.worst_gap, 1e3 * f.solver.seconds_mean,
               1e3 * f.solver.seconds_max);
  }
  fmt::print("  held         {} tokens at most between steps\n", grouped(static_cast<Tokens>(f.held_tokens.max)));
  fmt::print("  packing      {:.2f} ms a step on average, {:.2f} ms at most (measured here)\n",
             1e3 * f.packing_seconds.mean(), 1e3 * f.packing_seconds.max);
  if (!options.out.empty()) fmt::print("  written      {}\n", options.out);
}

void run(PackOptions options) {
  check(options);
  options.spec.tune_queues = options.queues == "auto";
  if (options.spec.tune_queues && options.spec.packer != "wlb")
    throw UserError("--queues = auto: tunes wlb's queues; --packer is not wlb");
  if (!options.spec.tune_queues && !options.queues.empty()) {
    options.spec.queues = sizes_of_text("--queues", options.queues);
  }
  options.spec.oversize = parse_oversize(options.oversize);
  require_valid(options.spec.violations(), "pack");
  const std::unique_ptr<CostModel> cost = make_cost(options.cost);
  const DocumentLengths input = read_lengths(options.lengths, options.sampling);
  for (std::size_t i = 0; i < input.lengths.size(); ++i) {
    require_fits(options.spec, {.id = static_cast<std::int64_t>(i), .length = input.lengths[i]});
  }
  std::optional<QueueTuning> tuning;
  if (options.spec.tune_queues) {
    DocumentStream sample = stream_of(options, input);
    std::vector<Tokens> lengths;
    while (const auto document = sample.next()) lengths.push_back(document->length);
    tuning = tune_queues(options.spec, *cost, lengths);
    options.spec.queues = tuning->chosen.queues;
    options.spec.tune_queues = false;
  }
  std::unique_ptr<AtomicFile> out;
  if (!options.out.empty()) out = std::make_unique<AtomicFile>(options.out);
  const Figures figures = pack(options, input, *cost, out.get());
  if (out) out->commit();
  if (options.json) {
    ordered_json result = to_json(options, input, *cost, figures);
    if (tuning) result["queue_tuning"] = to_json(*tuning);
    fmt::print("{}\n", result.dump(2));
  } else if (!options.quiet) {
    if (tuning) print(*tuning);
    print(options, input, *cost, figures);
  }
}

}  // namespace

void add_pack(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("pack", "Packs document lengths into micro-batches and says how even they are");
  const auto options = std::make_shared<PackOptions>();
  PackOptions& o = *options;
  o.spec.packer.clear();
  verb->add_option("lengths", o.lengths,
                   "One number a line, JSONL with length (or tokens) and domain, a JSON list, CSV, a histogram "
                   "{\"[a,b)\": share}, a corpus folder, or - for standard input")
      ->required()
      ->type_name("LENGTHS");
  verb->add_option("--packer", o.spec.packer, join(packer_names()))->required()->type_name("NAME");
  add_size_option(*verb, "--window", o.spec.window, "Context window S")->required();
  verb->add_option("--micro-batches", o.spec.micro_batches, "Micro-batches a step, N")->required()->type_name("N");
  verb->add_option("--global-batches", o.spec.global_batches,
                   "fixed-greedy, fixed-solver: balance over K global batches")
      ->type_name("K");
  add_size_option(*verb, "--max-tokens", o.spec.max_tokens,
                  "wlb, pool: most tokens of a micro-batch; the window where nothing is said");
  verb->add_option(
          "--queues", o.queues,
          "wlb: documents of A tokens and more wait in bands [A,B), [B,...) for N of their kind; auto: tuned on "
          "these lengths")
      ->type_name("A,B,...");
  verb->add_option("--max-delay", o.spec.max_delay,
                   "wlb, pool: a document waits so many steps at most, then goes where it fits")
      ->type_name("STEPS");
  verb->add_option("--token-swing", o.spec.token_swing,
                   "wlb, pool: most that a step's tokens may differ from N windows, as a share of them")
      ->type_name("SHARE");
  add_size_option(*verb, "--max-held", o.spec.max_held, "wlb, pool: most tokens that wait between steps");
  verb->add_option("--max-documents", o.spec.max_documents, "wlb, pool: most documents of a micro-batch")
      ->type_name("COUNT");
  verb->add_option("--mix-weight", o.spec.mix_weight,
                   "pool: what it is worth, in imbalance, that a step's tokens keep the mix of domains")
      ->type_name("WEIGHT");
  verb->add_option("--oversize", o.oversize, "Documents longer than the window: truncate (and count), split or refuse")
      ->type_name("POLICY")
      ->capture_default_str();
  add_cost_options(*verb, o.cost);
  verb->add_option("--shuffle", o.shuffle, "Shuffle the documents first, by this seed")->type_name("SEED");
  verb->add_option("--skip-steps", o.skip_steps, "Leave the first K steps out of the figures")->type_name("K");
  verb->add_option("--documents", o.sampling.documents, "Histogram: how many documents to draw")
      ->type_name("COUNT")
      ->capture_default_str();
  verb->add_option("--seed", o.sampling.seed, "Histogram: seed of the draw")->type_name("SEED")->capture_default_str();
  verb->add_option("--out", o.out, "Write the packed steps, JSONL, a step a line")->type_name("FILE");
  verb->add_flag("--json", o.json, "One JSON object on standard output");
  verb->add_flag("--quiet", o.quiet, "No text on standard output");
  verb->footer(
      "Example: balance a corpus for 4 pipelines of 128K, long documents waiting for their like\n"
      "  ballast pack corpus/ --packer wlb --window 128K --micro-batches 4 --max-tokens 160K \\\n"
      "      --queues 32K,64K --shuffle 1 --out packed.jsonl");
  verb->callback([options] { run(*options); });
}

}  // namespace ballast::cli
