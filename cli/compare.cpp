// ballast compare RUN RUN...: how fast, how balanced and how well runs went against the first of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "ballast/base/error.h"
#include "ballast/diagnose/run_story.h"
#include "ballast/io/run_record_json.h"
#include "cli/run_selection.h"
#include "cli/verbs.h"

namespace ballast::cli {

namespace {

using Json = nlohmann::ordered_json;

struct CompareOptions {
  std::vector<std::string> runs;
  std::optional<std::int64_t> skip_steps;
  bool pairs = false;
  bool json = false;
};

Json optional_number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json json_of(const RunComparison& comparison) {
  Json differences = Json::array();
  for (const Difference& difference : comparison.differences) {
    differences.push_back({{"what", difference.what},
                           {"base", difference.base},
                           {"this", difference.other},
                           {"intended", difference.intended}});
  }
  return {{"speedup",
           {{"ratio", comparison.speed.ratio},
            {"low", comparison.speed.low},
            {"high", comparison.speed.high},
            {"spread", comparison.speed.paired ? "bootstrap over steps, paired, 90% interval"
                                               : "bootstrap over steps, 90% interval"},
            {"source", to_string(comparison.source)},
            {"predicted", optional_number(comparison.predicted_ratio)}}},
          {"loss_difference", finite(comparison.loss_difference)},
          {"late_loss_difference", finite(comparison.late_loss_difference)},
          {"same_tokens", comparison.same_tokens},
          {"differences", std::move(differences)}};
}

std::string cell(const std::optional<double>& value, const char* unit = "") {
  return value ? fmt::format("{:.3f}{}", *value, unit) : "-";
}

void print_table(const std::vector<RunRecord>& runs, const std::vector<RunComparison>& comparisons) {
  std::size_t width = 3;
  for (const RunRecord& run : runs) width = std::max(width, run.name.size());
  fmt::print("{:<{}}  {:<12} {:<13} {:>6} {:>10}  {:<9} {:>9} {:>9} {:>9} {:>9}  {}\n", "run", width, "packer",
             "sharding", "steps", "tokens/s", "source", "p50 s", "imbalance", "loss", "pred.err", "speed-up");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunRecord& run = runs[i];
    RunSummary summary;
    add_steps(summary, run.steps, 0);  // those to be skipped are gone already
    const SpeedSource source = i == 0 ? speed_source(run.steps) : comparisons[i].source;
    const std::string speed = i == 0 ? "1 (the base)"
                                     : fmt::format("{:.3f}x ({:.3f} to {:.3f})", comparisons[i].speed.ratio,
                                                   comparisons[i].speed.low, comparisons[i].speed.high);
    const auto& error = run.summary.prediction_error;
    fmt::print("{:<{}}  {:<12} {:<13} {:>6} {:>10.0f}  {:<9} {:>9.3f} {:>9} {:>9} {:>9}  {}\n", run.name, width,
               run.summary.packer, run.summary.sharding, run.steps.size(),
               tokens_per_second(run.steps, source).value_or(0), to_string(source), summary.step_seconds_p50,
               cell(run.summary.imbalance_measured),
               std::isfinite(run.steps.back().loss) ? fmt::format("{:.4f}", run.steps.back().loss) : "-",
               error ? fmt::format("{:.1f}%", 100 * error->mean) : "-", speed);
  }
}

void compare(const CompareOptions& options) {
  const std::vector<RunFolder> folders = read_runs(options.runs, RunParts::figures);
  const std::int64_t skip_steps = steps_to_skip(options.skip_steps, folders);
  std::vector<RunRecord> runs;
  for (const RunFolder& folder : folders) runs.push_back(record_of(folder, skip_steps));
  if (options.pairs && runs.size() % 2 != 0) {
    throw UserError("--pairs: " + std::to_string(runs.size()) +
                    " runs do not make pairs; give base and other in turn, an even number of them");
  }
  std::vector<RunComparison> comparisons(runs.size());
  bool all_replayed = speed_source(runs[0].steps) == SpeedSource::replayed;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    comparisons[i] = compare_runs(runs[options.pairs && i % 2 == 1 ? i - 1 : 0], runs[i]);
    all_replayed = all_replayed && comparisons[i].source == SpeedSource::replayed;
  }
  const bool any_simulated = std::any_of(comparisons.begin(), comparisons.end(), [](const RunComparison& comparison) {
    return comparison.source == SpeedSource::predicted;
  });
  const SpeedSource pair_source = any_simulated  ? SpeedSource::predicted
                                  : all_replayed ? SpeedSource::replayed
                                                 : SpeedSource::measured;
  std::optional<PairSpeedUps> pairs;
  if (options.pairs) {
    std::vector<double> rates;
    for (const RunRecord& run : runs) rates.push_back(tokens_per_second(run.steps, pair_source).value());
    pairs = pair_speed_ups(rates);
  }

  if (options.json) {
    Json out = {{"skip_steps", skip_steps}, {"runs", Json::array()}};
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const SpeedSource source = speed_source(runs[i].steps);
      Json entry = {{"name", runs[i].name},
                    {"folder", folders[i].path.string()},
                    {"finished", folders[i].finished},
                    {"notes", folders[i].notes},
                    {"steps_compared", runs[i].steps.size()},
                    {"tokens_per_second", tokens_per_second(runs[i].steps, source).value()},
                    {"source", to_string(source)},
                    {"summary", Json::parse(to_json(runs[i].summary))}};
      if (i > 0) entry.update(json_of(comparisons[i]));
      out["runs"].push_back(std::move(entry));
    }
    if (pairs) {
      out["pairs"] = {{"speedups", pairs->ratios},
                      {"median", pairs->median},
                      {"min", pairs->min},
                      {"max", pairs->max},
                      {"source", to_string(pair_source)}};
    }
    fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
    return;
  }

  print_table(runs, comparisons);
  fmt::print("\n");
  if (pairs) {
    fmt::print("Pair by pair ({}): median {:.3f}x, {:.3f}x to {:.3f}x over {} pairs.\n", to_string(pair_source),
               pairs->median, pairs->min, pairs->max, pairs->ratios.size());
  } else {
    std::vector<RunEvidence> evidence;
    for (const RunRecord& run : runs) evidence.push_back({run, {}});
    const RunStory story = tell_story(evidence);
    fmt::print("{}\n", story.headline);
    for (const std::string& detail : story.details) fmt::print("  {}\n", detail);
  }
  for (std::size_t i = 1; i < runs.size() && !options.pairs; ++i) {
    if (!std::isfinite(comparisons[i].loss_difference)) continue;  // of a simulated run, or one that diverged
    fmt::print("  Loss of {} minus {}'s: {:+.4f} at the last step, {:+.4f} over the last quarter{}.\n", runs[i].name,
               runs[0].name, comparisons[i].loss_difference, comparisons[i].late_loss_difference,
               comparisons[i].same_tokens ? "" : " (not the same number of tokens)");
  }
  for (std::size_t i = 0; i < folders.size(); ++i) {
    for (const std::string& note : folders[i].notes) fmt::print("  Note, {}: {}\n", runs[i].name, note);
  }
}

}  // namespace

void add_compare(CLI::App& app) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* verb = app.add_subcommand("compare", "Compare runs with the first of them: speed, balance, loss");
  verb->add_option("runs", options->runs, "Run folders; the first is the base")->required()->expected(2, 1000);
  verb->add_option("--skip-steps", options->skip_steps,
                   "Leave the first K steps of each run out; default 1, the warm-up")
      ->check(CLI::NonNegativeNumber);
  verb->add_flag("--pairs", options->pairs, "Runs were made in turn: base, other, base, other, ...");
  verb->add_flag("--json", options->json, "One JSON object on stdout");
  verb->footer(
      "Example:\n  ballast compare runs/plain runs/balanced --skip-steps 2\n\n"
      "Speed is total tokens / total step time, replayed where both runs have a replay, else measured. The\n"
      "spread is a bootstrap over steps (90% interval); with --pairs it is the median, least and greatest pair.");
  verb->callback([options] { compare(*options); });
}

}  // namespace ballast::cli
