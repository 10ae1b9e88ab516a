#include "ballast/planner/step_stream.h"

#include <chrono>
#include <utility>

#include "ballast/planner/imbalance.h"
#include "ballast/simulate/engine.h"
#include "ballast/simulate/predict.h"

namespace ballast {

ProgramSettings step_settings(const RunSpec& run, const PredictionOptions& options, std::int64_t step) {
  ProgramSettings settings = program_settings(run);
  settings.network_axes = options.network_axes;
  const int every = run.training.checkpoint_every;
  if (every > 0 && (step + 1) % every == 0) settings.checkpoint_seconds = options.checkpoint_seconds;
  return settings;
}

void predict_step(PlannedStep& step, const RunSpec& run, const CostModel& cost, const PredictionOptions& options) {
  const ProgramSettings settings = step_settings(run, options, step.plan.step);
  const StepCosts costs = step_costs(step.plan, run.model, cost, settings);
  if (options.shared_links) {
    step.predicted =
        execute_on_shared_links(make_program(step.plan, cost, settings, costs), *options.shared_links, "predicted");
    step.fast = {.time = analyze(step.predicted).at(0),
                 .events = static_cast<std::int64_t>(step.predicted.spans.size())};
  } else {
    if (options.timelines) step.predicted = execute(make_program(step.plan, cost, settings, costs), "predicted");
    step.fast = fast_step(step.plan.dims, step.plan.schedule, costs, settings);
    step.fast.time.step = step.plan.step;
  }
  step.predicted_seconds = step.fast.time.end;
  step.imbalance_micro_batch = micro_batch_imbalance(step.plan.packed(), cost);
  step.imbalance_cp = cp_imbalance(step.plan, cost);
}

StepStream::StepStream(const RunSpec& run, const CostModel& cost, DocumentStream documents,
                       const PredictionOptions& options)
    : run_(run),
      cost_(cost),
      settings_(step_plan_settings(run)),
      options_(options),
      documents_(std::move(documents)),
      packed_(run.packing, cost, [this] { return documents_.next(); }) {}

std::optional<PlannedStep> StepStream::next() {
  const auto begin = std::chrono::steady_clock::now();
  const std::optional<PackedStep> packed = packed_.next();
  if (!packed) return std::nullopt;
  PlannedStep step;
  step.plan = make_step_plan(*packed, settings_, cost_);
  predict_step(step, run_, cost_, options_);
  step.planning_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return step;
}

void StepStream::restore(const PackerState& state) {
  packed_.restore(state);
  const std::int64_t taken = state.counts.documents_in;
  const std::int64_t of_epoch = documents_.num_documents();
  // An epoch all taken is its own end, not the next one's start: after the last there is no next.
  const std::int64_t epoch = taken > 0 ? (taken - 1) / of_epoch : 0;
  documents_.seek({.epoch = epoch, .index = taken - epoch * of_epoch});
}

}  // namespace ballast
