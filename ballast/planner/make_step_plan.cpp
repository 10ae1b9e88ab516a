#include "ballast/planner/make_step_plan.h"

#include <algorithm>
#include <numeric>

#include "ballast/planner/pipeline_order.h"
#include "ballast/schedule/make_schedule.h"

namespace ballast {

StepPlanSettings step_plan_settings(const RunSpec& run) {
  return {.dims = run.parallel,
          .schedule = run.schedule,
          .stage_layers = run.layers_by_stage(),
          .sharding = run.sharding,
          .placement = {.rank_tokens = run.rank_tokens, .moves = run.moves == "auto"},
          .assignment = run.packing.packer == "plain" || run.packing.packer == "next-fit"
                            ? PipelineAssignment::contiguous
                            : PipelineAssignment::balanced};
}

std::vector<std::vector<std::size_t>> assign_balanced(const std::vector<Seconds>& seconds, int pipelines) {
  const auto count = static_cast<std::size_t>(pipelines);
  const std::size_t room = (seconds.size() + count - 1) / count;
  std::vector<std::size_t> longest_first(seconds.size());
  std::iota(longest_first.begin(), longest_first.end(), std::size_t{0});
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [&](std::size_t a, std::size_t b) { return seconds[a] > seconds[b]; });
  std::vector<std::vector<std::size_t>> assigned(count);
  std::vector<Seconds> load(count, 0);
  for (const std::size_t m : longest_first) {
    std::size_t least = count;
    for (std::size_t p = 0; p < count; ++p) {
      if (assigned[p].size() < room && (least == count || load[p] < load[least])) least = p;
    }
    assigned[least].push_back(m);
    load[least] += seconds[m];
  }
  for (auto& micro_batches : assigned) std::sort(micro_batches.begin(), micro_batches.end());  // arrival order
  return assigned;
}

namespace {

std::vector<std::vector<std::size_t>> assign_contiguous(std::size_t count, int pipelines) {
  const std::size_t each = (count + static_cast<std::size_t>(pipelines) - 1) / static_cast<std::size_t>(pipelines);
  std::vector<std::vector<std::size_t>> assigned(static_cast<std::size_t>(pipelines));
  for (std::size_t m = 0; m < count; ++m) assigned[m / each].push_back(m);
  return assigned;
}

}  // namespace

std::vector<std::vector<std::size_t>> order_micro_batches(const std::vector<Seconds>& seconds,
                                                          const StepPlanSettings& settings, const Schedule& schedule) {
  const bool balanced = settings.assignment == PipelineAssignment::balanced;
  std::vector<std::vector<std::size_t>> assigned =
      balanced ? assign_balanced(seconds, settings.dims.dp) : assign_contiguous(seconds.size(), settings.dims.dp);
  if (!balanced) return assigned;
  for (std::vector<std::size_t>& of_pipeline : assigned) {
    std::vector<Seconds> own;
    for (const std::size_t m : of_pipeline) own.push_back(seconds[m]);
    std::vector<std::size_t> ordered = of_pipeline;
    const std::vector<std::size_t> best = best_pipeline_order(schedule, own);
    std::transform(best.begin(), best.end(), ordered.begin(), [&](std::size_t i) { return of_pipeline[i]; });
    of_pipeline = std::move(ordered);
  }
  return assigned;
}

StepPlan make_step_plan(const PackedStep& packed, const StepPlanSettings& settings, const CostModel& cost) {
  const int dp = settings.dims.dp;
  const int each = (static_cast<int>(packed.micro_batches.size()) + dp - 1) / dp;
  StepPlan plan{.step = packed.step,
                .dims = settings.dims,
                .stage_layers = settings.stage_layers,
                .micro_batches = {},
                .shard_plans = {},
                .schedule = make_schedule(settings.schedule, settings.dims.pp, each)};

  std::vector<MicroBatch> micro_batches = packed.micro_batches;
  micro_batches.resize(static_cast<std::size_t>(each * dp));
  std::vector<Seconds> seconds;
  for (const MicroBatch& micro_batch : micro_batches) seconds.push_back(cost.micro_batch(micro_batch));

  for (const std::vector<std::size_t>& of_pipeline : order_micro_batches(seconds, settings, plan.schedule)) {
    auto& pipeline = plan.micro_batches.emplace_back();
    auto& shards = plan.shard_plans.emplace_back();
    for (const std::size_t m : of_pipeline) {
      pipeline.push_back(micro_batches[m]);
      shards.push_back(make_shard_plan(settings.sharding, micro_batches[m].cu_seqlens(), settings.dims.cp, cost,
                                       settings.placement));
    }
  }
  return plan;
}

}  // namespace ballast
