#include "cli/run_summary.h"

#include <fmt/format.h>

#include <ctime>
#include <sstream>

#include "ballast/io/atomic_file.h"
#include "ballast/io/plan_json.h"
#include "ballast/io/run_record_json.h"
#include "ballast/io/timeline_json.h"
#include "ballast/packing/balance.h"
#include "ballast/planner/plan_run.h"
#include "ballast/simulate/analysis.h"
#include "ballast/simulate/replay.h"

namespace ballast::cli {

namespace {

namespace fs = std::filesystem;

std::vector<StepMetrics> read_metrics(const fs::path& folder) {
  const fs::path path = folder / "metrics.jsonl";
  std::istringstream lines(read_file(path));
  std::vector<StepMetrics> metrics;
  for (std::string line; std::getline(lines, line);) metrics.push_back(step_metrics_from_json(line, path.string()));
  return metrics;
}

constexpr double kShownShare = 0.005;  // of all busy time: kinds of less say nothing

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", std::localtime(&now));
  return text;
}

}  // namespace

void replay_run(const fs::path& folder) {
  const Timeline replayed = replay(read_run_timeline(folder / "timeline", "measured"));
  const fs::path path = folder / "timeline" / "replayed.jsonl";
  fs::remove(path);
  TimelineWriter(path, "replayed", replayed.dims).append(replayed.spans);

  std::map<std::int64_t, Seconds> seconds;
  for (const StepTime& step : analyze(replayed)) seconds[step.step] = step.step_seconds();
  std::string lines;
  for (StepMetrics& step : read_metrics(folder)) {
    if (const auto found = seconds.find(step.step); found != seconds.end()) step.replayed_step_seconds = found->second;
    lines += to_json(step) + '\n';
  }
  write_file_atomically(folder / "metrics.jsonl", lines);
}

RunSummary summarise_run(const fs::path& folder, const RunSpec& spec, const std::string& command,
                         const PackerState& state, const std::vector<std::string>& domains) {
  const std::vector<StepMetrics> metrics = read_metrics(folder);
  RunSummary summary = summary_of(spec);
  summary.command = command;
  summary.date = today();
  if (metrics.empty()) return summary;
  add_steps(summary, metrics, warm_up_steps(metrics.size()));

  TokenDelay delay;
  const std::vector<StepPlan> plans = read_step_plans(folder / "plan.jsonl");
  for (const StepPlan& plan : plans) delay.add(plan.packed());
  if (!plans.empty()) {
    // Of these plans: their longest micro-batch, which may be shorter than the longest that a packer may emit.
    RunSpec planned = spec;
    planned.packing.packer = "plain";
    planned.packing.window = 1;
    for (const StepPlan& plan : plans) {
      for (const auto& pipeline : plan.micro_batches) {
        for (const MicroBatch& m : pipeline) {
          planned.packing.window = std::max(planned.packing.window, m.num_tokens());
        }
      }
    }
    summary.predicted_peak_memory_bytes = static_cast<double>(peak_memory(planned, plans.front().schedule));
  }
  summary.token_delay_steps = delay.overall();
  for (const auto& [domain, quantiles] : delay.by_domain()) {
    const auto index = static_cast<std::size_t>(domain);
    summary.token_delay_by_domain[index < domains.size() ? domains[index] : fmt::format("domain {}", domain)] =
        quantiles;
  }
  summary.documents_in = state.counts.documents_in;
  summary.documents_out = state.counts.documents_out;
  summary.documents_truncated = state.counts.truncated;
  summary.documents_split = state.counts.split;
  summary.documents_held = state.counts.documents_in - state.counts.documents_out;
  return summary;
}

std::string prediction_by_kind(const fs::path& folder) {
  const fs::path timelines = folder / "timeline";
  if (!fs::exists(timelines / "predicted.jsonl")) return {};
  const Timeline predicted = read_run_timeline(timelines, "predicted");
  if (predicted.spans.empty()) return {};
  const bool replayed = fs::exists(timelines / "replayed.jsonl");
  std::map<SpanKind, std::pair<Seconds, Seconds>> busy;  // measured, predicted
  Seconds all = 0;
  const auto add = [&](const Timeline& timeline, bool measured) {
    const std::vector<StepTime> steps = analyze(timeline);
    for (std::size_t i = warm_up_steps(steps.size()); i < steps.size(); ++i) {
      for (const auto& [kind, seconds] : steps[i].seconds_by_kind) {
        (measured ? busy[kind].first : busy[kind].second) += seconds;
        if (measured) all += seconds;
      }
    }
  };
  add(read_run_timeline(timelines, replayed ? "replayed" : "measured"), true);
  add(predicted, false);
  std::string text;
  for (const auto& [kind, seconds] : busy) {
    const auto [measured, expected] = seconds;
    if (measured < kShownShare * all) continue;
    text += fmt::format("{}{} {:+.0f}%", text.empty() ? "" : ", ", to_string(kind), 100 * (expected / measured - 1));
  }
  return fmt::format("predicted busy time by kind against {}: {}\n", replayed ? "replayed" : "measured", text);
}

std::string to_text(const RunSummary& s) {
  std::string text =
      fmt::format("{} steps, {} tokens, loss {:.4f} to {:.4f}\n", s.steps, s.tokens, s.loss_first, s.loss_last);
  text += fmt::format("{:.0f} tokens/s measured, step {:.3f} s (median {:.3f}, slowest {:.3f})", s.tokens_per_second,
                      s.step_seconds_mean, s.step_seconds_p50, s.step_seconds_max);
  if (s.tokens_per_second_replayed) text += fmt::format("; {:.0f} tokens/s replayed", *s.tokens_per_second_replayed);
  text += '\n';
  if (s.imbalance_measured) text += fmt::format("imbalance of ranks {:.3f} measured", *s.imbalance_measured);
  if (s.imbalance_micro_batch) text += fmt::format(", of micro-batches {:.3f} predicted", *s.imbalance_micro_batch);
  if (s.prediction_error) {
    text += fmt::format("; predicted step time off by {:.1f}% (at most {:.1f}%)", 100 * s.prediction_error->mean,
                        100 * s.prediction_error->max);
  }
  if (s.peak_memory_bytes && s.predicted_peak_memory_bytes) {
    text += fmt::format("; tensors of the fullest rank held {:.1f} MB, predicted {:.1f}", *s.peak_memory_bytes / 1e6,
                        *s.predicted_peak_memory_bytes / 1e6);
  }
  return text + '\n';
}

}  // namespace ballast::cli
