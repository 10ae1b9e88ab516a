// ballast analyze: does a workload lose time to unequal documents, and what would help?
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "ballast/base/error.h"
#include "ballast/io/lengths.h"
#include "ballast/planner/workload_analysis.h"
#include "ballast/workload/document_stream.h"
#include "cli/cost_option.h"
#include "cli/size_option.h"
#include "cli/verbs.h"

namespace ballast::cli {

namespace {

using nlohmann::ordered_json;

struct AnalyzeOptions {
  std::string lengths;
  Tokens window = 0;
  int micro_batches = 0;
  int cp = 1;
  CostOptions cost;
  std::optional<std::uint64_t> shuffle;
  HistogramSampling sampling;
  bool json = false;
  bool quiet = false;
};

struct DomainFigures {
  std::int64_t documents = 0;
  Tokens tokens = 0;
  double token_share = 0;
  double squares_share = 0;  // of the squared lengths
};

// In the domains' order of appearance.
std::vector<DomainFigures> by_domain(const DocumentLengths& input) {
  std::vector<DomainFigures> figures(input.domain_names.size());
  double tokens = 0;
  double squares = 0;
  for (std::size_t i = 0; i < input.lengths.size(); ++i) {
    DomainFigures& domain = figures[static_cast<std::size_t>(input.domains[i])];
    ++domain.documents;
    domain.tokens += input.lengths[i];
    const auto length = static_cast<double>(input.lengths[i]);
    domain.squares_share += length * length;
    tokens += length;
    squares += length * length;
  }
  for (DomainFigures& domain : figures) {
    domain.token_share = tokens > 0 ? static_cast<double>(domain.tokens) / tokens : 0;
    if (squares > 0) domain.squares_share /= squares;
  }
  return figures;
}

ordered_json to_json(const AnalyzeOptions& options, const DocumentLengths& input, const CostModel& cost,
                     const WorkloadAnalysis& a) {
  const StrategyForecast& plain = a.strategies.front();
  ordered_json bands = ordered_json::array();
  for (const LengthBand& band : a.bands) {
    bands.push_back({{"from_tokens", band.from},
                     {"to_tokens", band.to},
                     {"documents", band.documents},
                     {"token_share", band.token_share},
                     {"squared_length_share", band.squares_share}});
  }
  ordered_json domains;
  const std::vector<DomainFigures> figures = by_domain(input);
  for (std::size_t d = 0; d < figures.size(); ++d) {
    domains[input.domain_names[d]] = {{"documents", figures[d].documents},
                                      {"tokens", figures[d].tokens},
                                      {"token_share", figures[d].token_share},
                                      {"squared_length_share", figures[d].squares_share}};
  }
  ordered_json speedups;
  ordered_json strategies = ordered_json::array();
  for (const StrategyForecast& s : a.strategies) {
    speedups[s.packer + " " + s.sharding] = s.speedup;
    strategies.push_back({{"packer", s.packer},
                          {"sharding", s.sharding},
                          {"imbalance", {{"micro_batch", s.imbalance_micro_batch}, {"cp", s.imbalance_cp}}},
                          {"token_delay_steps", s.token_delay_steps},
                          {"predicted_speedup", s.speedup}});
  }
  ordered_json windows = ordered_json::array();
  for (const WindowForecast& w : a.windows) {
    windows.push_back({{"window_tokens", w.window},
                       {"imbalance", w.imbalance},
                       {"attention_share", w.attention_share},
                       {"predicted_speedup", w.speedup}});
  }
  return {{"documents", a.documents},
          {"tokens", a.tokens},
          {"window_tokens", options.window},
          {"micro_batches", options.micro_batches},
          {"cp", options.cp},
          {"cost", cost.name()},
          {"bands", std::move(bands)},
          {"domains", std::move(domains)},
          {"imbalance", {{"micro_batch", plain.imbalance_micro_batch}, {"cp", plain.imbalance_cp}}},
          {"attention_share", a.attention_share},
          {"communication_share", a.communication_share},
          {"predicted_speedup", std::move(speedups)},
          {"strategies", std::move(strategies)},
          {"windows", std::move(windows)},
          {"verdict", to_string(a.verdict)},
          {"why", a.why}};
}

void print(const AnalyzeOptions& options, const DocumentLengths& input, const CostModel& cost,
           const WorkloadAnalysis& a) {
  fmt::print("{}: {}\n\n", to_string(a.verdict), a.why);
  fmt::print("{} documents, {} tokens; windows of {}, {} micro-batches a step, cp {}; predicted by cost {}\n",
             grouped(a.documents), grouped(a.tokens), grouped(options.window), options.micro_batches, options.cp,
             cost.name());
  fmt::print("attention is {:.0f}% of the work, exchange of keys and values {:.0f}% of a layer\n\n",
             100 * a.attention_share, 100 * a.communication_share);
  fmt::print("{:>12} {:>12} {:>9} {:>16}\n", "length from", "documents", "tokens", "squared lengths");
  for (const LengthBand& band : a.bands) {
    fmt::print("{:>12} {:>12} {:>8.1f}% {:>15.1f}%\n", grouped(band.from), grouped(band.documents),
               100 * band.token_share, 100 * band.squares_share);
  }
  if (input.domain_names.size() > 1) {
    const std::vector<DomainFigures> figures = by_domain(input);
    fmt::print("\n{:>12} {:>12} {:>9} {:>16}\n", "domain", "documents", "tokens", "squared lengths");
    for (std::size_t d = 0; d < figures.size(); ++d) {
      fmt::print("{:>12} {:>12} {:>8.1f}% {:>15.1f}%\n", input.domain_names[d], grouped(figures[d].documents),
                 100 * figures[d].token_share, 100 * figures[d].squares_share);
    }
  }
  fmt::print("\n{:<14} {:<14} {:>12} {:>10} {:>12} {:>10}\n", "packer", "sharding", "imbalance", "of ranks", "delay",
             "speed-up");
  for (const StrategyForecast& s : a.strategies) {
    fmt::print("{:<14} {:<14} {:>12.3f} {:>10.3f} {:>6.2f} steps {:>9.2f}x\n", s.packer, s.sharding,
               s.imbalance_micro_batch, s.imbalance_cp, s.token_delay_steps, s.speedup);
  }
  fmt::print("(slowest over mean, weighed by work; speed-up over the first line, at equal work)\n");
  fmt::print("\n{:>12} {:>12} {:>12} {:>10}\n", "window", "attention", "imbalance", "speed-up");
  for (const WindowForecast& w : a.windows) {
    fmt::print("{:>12} {:>11.0f}% {:>12.3f} {:>9.2f}x\n", grouped(w.window), 100 * w.attention_share, w.imbalance,
               w.speedup);
  }
  fmt::print("(plain packing and per-sequence sharding, and what pool packing and adaptive sharding gain)\n");
}

void run(const AnalyzeOptions& options) {
  if (options.window < 1) throw UserError(fmt::format("--window = {}: must be 1 or more tokens", options.window));
  if (options.micro_batches < 1) {
    throw UserError(fmt::format("--micro-batches = {}: must be 1 or more", options.micro_batches));
  }
  if (options.cp < 1) throw UserError(fmt::format("--cp = {}: must be 1 or more ranks", options.cp));
  if (options.sampling.documents < 1) throw UserError("--documents must be 1 or more");
  const std::unique_ptr<CostModel> cost = make_cost(options.cost);
  const DocumentLengths input = read_lengths(options.lengths, options.sampling);
  DocumentStream stream(input.lengths, input.domains,
                        {.shuffle = options.shuffle.has_value(), .seed = options.shuffle.value_or(0), .num_epochs = 1});
  std::vector<Tokens> lengths;
  while (const auto document = stream.next()) lengths.push_back(document->length);
  const WorkloadAnalysis analysis = analyze_workload(lengths, options.window, options.micro_batches, options.cp, *cost);
  if (options.json) {
    fmt::print("{}\n", to_json(options, input, *cost, analysis).dump(2));
  } else if (!options.quiet) {
    print(options, input, *cost, analysis);
  }
}

}  // namespace

void add_analyze(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("analyze", "Says whether unequal documents cost time here, and what would help");
  const auto options = std::make_shared<AnalyzeOptions>();
  AnalyzeOptions& o = *options;
  verb->add_option("lengths", o.lengths, "Document lengths, as for `ballast pack`")->required()->type_name("LENGTHS");
  add_size_option(*verb, "--window", o.window, "Context window S")->required();
  verb->add_option("--micro-batches", o.micro_batches, "Micro-batches a step, N")->required()->type_name("N");
  verb->add_option("--cp", o.cp, "Context parallel ranks a micro-batch")->type_name("C")->capture_default_str();
  add_cost_options(*verb, o.cost);
  verb->add_option("--shuffle", o.shuffle, "Shuffle the documents first, by this seed")->type_name("SEED");
  verb->add_option("--documents", o.sampling.documents, "Histogram: how many documents to draw")
      ->type_name("COUNT")
      ->capture_default_str();
  verb->add_option("--seed", o.sampling.seed, "Histogram: seed of the draw")->type_name("SEED")->capture_default_str();
  verb->add_flag("--json", o.json, "One JSON object on standard output");
  verb->add_flag("--quiet", o.quiet, "No text on standard output");
  verb->footer(
      "Example: would balancing help this corpus at 128K, 4 pipelines, 8 context parallel ranks each?\n"
      "  ballast analyze corpus/ --window 128K --micro-batches 4 --cp 8 --shuffle 1");
  verb->callback([options] { run(*options); });
}

}  // namespace ballast::cli
