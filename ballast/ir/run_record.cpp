#include "ballast/ir/run_record.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

#include "ballast/base/error.h"

namespace ballast {

namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

// Over the steps that have the figure; nothing where none has.
std::optional<MeanMax> mean_and_max(std::span<const StepMetrics> steps,
                                    const std::function<std::optional<double>(const StepMetrics&)>& figure) {
  MeanMax result;
  int count = 0;
  for (const StepMetrics& step : steps) {
    const std::optional<double> value = figure(step);
    if (!value) continue;
    result.mean += *value;
    result.max = std::max(result.max, *value);
    ++count;
  }
  if (count == 0) return std::nullopt;
  result.mean /= count;
  return result;
}

std::optional<double> mean(std::span<const StepMetrics> steps, std::optional<double> StepMetrics::*field) {
  const std::optional<MeanMax> both = mean_and_max(steps, [&](const StepMetrics& step) { return step.*field; });
  return both ? std::optional(both->mean) : std::nullopt;
}

}  // namespace

RunSummary summary_of(const RunSpec& spec) {
  RunSummary summary;
  summary.model = to_string(spec.model);
  summary.precision = to_string(spec.training.precision);
  summary.window = spec.packing.window;
  summary.parallel = spec.parallel;
  summary.virtual_stages = spec.schedule.virtual_stages;
  summary.packer = spec.packing.packer;
  summary.sharding = spec.sharding;
  summary.profile = spec.profile;
  summary.seed = spec.seed;
  return summary;
}

void add_steps(RunSummary& summary, const std::vector<StepMetrics>& steps, std::size_t num_left_out) {
  BALLAST_ASSERT(num_left_out < steps.size(), "some steps are left");
  summary.steps = static_cast<std::int64_t>(steps.size());
  summary.loss_first = steps.front().loss;
  summary.loss_last = steps.back().loss;
  summary.tokens = 0;
  for (const StepMetrics& step : steps) summary.tokens += step.tokens;

  const std::span<const StepMetrics> timed = std::span(steps).subspan(num_left_out);
  Tokens tokens = 0;
  Seconds seconds = 0;
  Seconds replayed = 0;
  std::vector<Seconds> durations;
  for (const StepMetrics& step : timed) {
    tokens += step.tokens;
    seconds += step.step_seconds;
    replayed += step.replayed_step_seconds.value_or(0);
    durations.push_back(step.step_seconds);
  }
  summary.tokens_per_second = static_cast<double>(tokens) / seconds;
  if (replayed > 0) summary.tokens_per_second_replayed = static_cast<double>(tokens) / replayed;
  summary.step_seconds_mean = seconds / static_cast<double>(timed.size());
  summary.step_seconds_p50 = median(durations);
  summary.step_seconds_max = *std::max_element(durations.begin(), durations.end());
  summary.imbalance_micro_batch = mean(timed, &StepMetrics::imbalance_micro_batch);
  summary.imbalance_cp = mean(timed, &StepMetrics::imbalance_cp);
  summary.imbalance_measured = mean(timed, &StepMetrics::imbalance_measured);
  const std::optional<MeanMax> memory =
      mean_and_max(timed, [](const StepMetrics& step) { return step.peak_memory_bytes; });
  summary.peak_memory_bytes = memory ? std::optional(memory->max) : std::nullopt;
  summary.prediction_error = mean_and_max(timed, [](const StepMetrics& step) -> std::optional<double> {
    if (!step.predicted_step_seconds || step.simulated) return std::nullopt;
    const Seconds measured = step.replayed_step_seconds.value_or(step.step_seconds);
    return std::abs(*step.predicted_step_seconds - measured) / measured;
  });
}

}  // namespace ballast
