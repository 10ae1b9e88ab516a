// A step without its timeline is the step with it: the fast path against the program of operations run by the engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "ballast/planner/make_step_plan.h"
#include "ballast/simulate/engine.h"
#include "ballast/simulate/fast_step.h"
#include "ballast/simulate/predict.h"
#include "ballast/simulate/shared_links.h"

namespace ballast {
namespace {

using ::testing::HasSubstr;

// Nothing is free, and no two parts cost the same.
class EverythingCosts final : public CostModel {
 public:
  Seconds attention(Pass pass, const AttentionBlock& block) const override {
    return (pass == Pass::forward ? 1.1e-6 : 2.9e-6) * static_cast<double>(attention_pairs(block)) + 3e-6;
  }
  Seconds layer(Pass pass, Tokens tokens) const override {
    return (pass == Pass::forward ? 1.7e-4 : 3.1e-4) * static_cast<double>(tokens) + 1e-5;
  }
  Seconds reorder(Pass, Tokens tokens) const override { return 1.3e-6 * static_cast<double>(tokens); }
  Seconds embedding(Pass pass, Tokens tokens) const override {
    return (pass == Pass::forward ? 2e-5 : 7e-5) * static_cast<double>(tokens);
  }
  Seconds head(Pass pass, Tokens tokens) const override {
    return (pass == Pass::forward ? 5e-5 : 9e-5) * static_cast<double>(tokens) + 2e-6;
  }
  Seconds optimizer(std::int64_t parameters) const override { return 1e-9 * static_cast<double>(parameters); }
  Seconds accumulation(std::int64_t parameters) const override { return 2e-10 * static_cast<double>(parameters); }
  Seconds collective(Collective operation, Axis axis, int ranks, Bytes bytes) const override {
    if (ranks <= 1) return 0;
    const double kind = 1 + 0.1 * static_cast<int>(operation) + 0.01 * static_cast<int>(axis);
    return kind * (1e-5 + 1e-9 * static_cast<double>(bytes)) * std::sqrt(ranks);
  }
  Seconds tensor_exchange(Pass pass, Tokens tokens) const override {
    return (pass == Pass::forward ? 3e-5 : 4e-5) * static_cast<double>(tokens);
  }
  Bytes kv_bytes_per_token() const override { return 64; }
  Bytes activation_bytes_per_token() const override { return 128; }
  Bytes query_bytes_per_token() const override { return 96; }
  CpLinks cp_links() const override {
    return {.ranks_per_node = 2,
            .lanes_per_node = 2,
            .lane_bytes_per_second = 1e6,
            .lane_latency = 1e-4,
            .node_bytes_per_second = 1e7,
            .node_latency = 1e-5,
            .routed = true,
            .chunk_bytes = 1024};
  }
  std::string name() const override { return "everything costs"; }
  Seconds document_attention(Tokens length) const override {
    return 4e-6 * static_cast<double>(length) * static_cast<double>(length);
  }
  Seconds document_linear(Tokens length) const override { return 5e-4 * static_cast<double>(length); }
};

struct Case {
  StepPlan plan;
  ModelSpec model;
  ProgramSettings settings;
};

Case any_case(const std::vector<std::string>& shardings) {
  const ParallelDims dims{.dp = *rc::gen::inRange(1, 5), .pp = *rc::gen::inRange(1, 5), .cp = *rc::gen::inRange(1, 5)};
  const int micro_batches = dims.dp * *rc::gen::inRange(1, 8);
  PackedStep packed;
  std::int64_t arrival = 0;
  for (int m = 0; m < micro_batches; ++m) {
    MicroBatch& micro_batch = packed.micro_batches.emplace_back();
    for (const int length : *rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 60))) {
      micro_batch.documents.push_back({.id = arrival, .arrival = arrival, .length = length});
      ++arrival;
    }
  }
  Case made;
  ScheduleSpec schedule;
  schedule.name = *rc::gen::elementOf(schedule_names());
  if (schedule.name != "1f1b") schedule.virtual_stages = *rc::gen::inRange(1, 4);
  if (schedule.name == "interleaved") schedule.round_size = dims.pp + *rc::gen::inRange(0, 4);
  const int stages = dims.pp * schedule.virtual_stages;
  std::vector<int> layers = layers_per_stage(*rc::gen::inRange(stages, 3 * stages + 1), stages);
  if (stages > 1 && *rc::gen::arbitrary<bool>()) {  // an embedding or a head on a stage of its own
    const std::size_t at = *rc::gen::element(std::size_t{0}, layers.size() - 1);
    layers[at] = 0;
  }
  made.model.num_layers = 0;
  for (const int of_stage : layers) made.model.num_layers += of_stage;
  made.model.tied_head = *rc::gen::arbitrary<bool>();
  made.settings.zero = *rc::gen::inRange(0, 4);
  made.settings.recompute = *rc::gen::arbitrary<bool>();
  made.settings.tensor_parallel = *rc::gen::element(1, 2);
  if (*rc::gen::arbitrary<bool>()) made.settings.layer_launch = {4e-3, 7e-3};
  made.settings.checkpoint_seconds = *rc::gen::element(0.0, 0.25);
  if (*rc::gen::arbitrary<bool>()) {
    const int rank = *rc::gen::inRange(0, dims.world_size());
    made.settings.slow_ranks = {{rank, 1.7, 1}, {dims.world_size() - 1 - rank, 1, 2.3}};
    made.settings.network_axes = *rc::gen::container<std::vector<Axis>>(
        rc::gen::element(Axis::cp, Axis::dp_cp, Axis::pp, Axis::tied, Axis::world));
  }
  made.plan = make_step_plan(
      packed, {.dims = dims, .schedule = schedule, .stage_layers = layers, .sharding = *rc::gen::elementOf(shardings)},
      EverythingCosts());
  return made;
}

RC_GTEST_PROP(FastStep, IsToTheBitTheStepThatTheTimelineShows, ()) {
  const Case made = any_case(sharding_names());
  const EverythingCosts cost;
  const Timeline timeline = predict(made.plan, made.model, cost, made.settings);
  const StepTime slow = analyze(timeline).at(0);
  const FastStep fast = fast_step(made.plan, made.model, cost, made.settings);
  RC_ASSERT(fast.time.end == slow.end);
  RC_ASSERT(fast.events == static_cast<std::int64_t>(timeline.spans.size()));

  const auto close = [](double a, double b) { return std::abs(a - b) <= 1e-9 * (1 + std::abs(b)); };
  RC_ASSERT(close(fast.time.bubble_share, slow.bubble_share));
  RC_ASSERT(fast.time.ranks.size() == slow.ranks.size());
  for (std::size_t r = 0; r < slow.ranks.size(); ++r) {
    RC_ASSERT(close(fast.time.ranks[r].work, slow.ranks[r].work));
    RC_ASSERT(close(fast.time.ranks[r].communication, slow.ranks[r].communication));
    RC_ASSERT(close(fast.time.ranks[r].wait, slow.ranks[r].wait));
    RC_ASSERT(close(fast.time.ranks[r].idle, slow.ranks[r].idle));
  }
  RC_ASSERT(fast.time.seconds_by_kind.size() == slow.seconds_by_kind.size());
  for (const auto& [kind, seconds] : slow.seconds_by_kind) {
    RC_ASSERT(fast.time.seconds_by_kind.contains(kind));
    RC_ASSERT(close(fast.time.seconds_by_kind.at(kind), seconds));
  }
}

RC_GTEST_PROP(SharedLinks, WithRingsAStepIsNeverFasterThanAlone, ()) {
  const Case made = any_case({"ring", "hybrid-dp", "zeppelin"});
  const Program program = make_program(made.plan, made.model, EverythingCosts(), made.settings);
  const Timeline timeline = execute_on_shared_links(program, {}, "predicted");
  RC_ASSERT(timeline.violations().empty());
  const Seconds alone = analyze(execute(program, "predicted")).at(0).end;
  RC_ASSERT(analyze(timeline).at(0).end >= alone * (1 - 1e-9));
}

RC_GTEST_PROP(SharedLinks, ThatNobodySharesGiveTheSameTimeline, ()) {
  const Case made = any_case(gathering_sharding_names());
  const Program program = make_program(made.plan, made.model, EverythingCosts(), made.settings);
  const StepTime alone = analyze(execute(program, "predicted")).at(0);
  const Timeline timeline = execute_on_shared_links(program, {}, "predicted");
  RC_ASSERT(timeline.violations().empty());
  const StepTime found = analyze(timeline).at(0);
  RC_ASSERT(std::abs(found.end - alone.end) <= 1e-9 * (1 + alone.end));
  for (std::size_t r = 0; r < alone.ranks.size(); ++r) {
    RC_ASSERT(std::abs(found.ranks[r].work - alone.ranks[r].work) <= 1e-9 * (1 + alone.end));
    RC_ASSERT(std::abs(found.ranks[r].wait - alone.ranks[r].wait) <= 1e-9 * (1 + alone.end));
  }
  const Timeline shared = execute_on_shared_links(
      program, {{Axis::cp, 1}, {Axis::dp_cp, 1}, {Axis::pp, 1}, {Axis::tied, 1}, {Axis::world, 1}}, "predicted");
  RC_ASSERT(shared.violations().empty());
  RC_ASSERT(analyze(shared).at(0).end >= alone.end * (1 - 1e-9));
}

TEST(FastStep, HoldsOn256Ranks) {
  for (const ParallelDims& dims : {ParallelDims{.dp = 4, .pp = 8, .cp = 8}, ParallelDims{.dp = 16, .pp = 4, .cp = 4},
                                   ParallelDims{.dp = 2, .pp = 16, .cp = 8}}) {
    PackedStep packed;
    for (int m = 0; m < 8 * dims.dp; ++m) {
      MicroBatch& micro_batch = packed.micro_batches.emplace_back();
      for (int d = 0; d < 4; ++d) micro_batch.documents.push_back({.length = 10 + (m * 37 + d * 101) % 200});
    }
    ModelSpec model;
    model.num_layers = 2 * dims.pp;
    const EverythingCosts cost;
    const StepPlan plan = make_step_plan(packed,
                                         {.dims = dims,
                                          .schedule = {.name = "interleaved", .virtual_stages = 2},
                                          .stage_layers = layers_per_stage(model.num_layers, 2 * dims.pp)},
                                         cost);
    for (const int zero : {0, 1, 2, 3}) {
      SCOPED_TRACE(to_string(dims) + " zero " + std::to_string(zero));
      const ProgramSettings settings{.tensor_parallel = 8, .zero = zero};
      EXPECT_EQ(fast_step(plan, model, cost, settings).time.end,
                analyze(predict(plan, model, cost, settings)).at(0).end);
    }
  }
}

TEST(FastStep, ASlowRankSlowsTheStepAndTheNetworkCardOnlyWhatLeavesTheNode) {
  PackedStep packed;
  for (int m = 0; m < 8; ++m) packed.micro_batches.push_back({.documents = {{.length = 100}}});
  ModelSpec model;
  const EverythingCosts cost;
  const StepPlan plan =
      make_step_plan(packed, {.dims = {.dp = 2, .pp = 2, .cp = 2}, .schedule = {}, .stage_layers = {1, 1}}, cost);
  model.num_layers = 2;
  const auto seconds = [&](ProgramSettings settings) { return fast_step(plan, model, cost, settings).time.end; };
  const Seconds healthy = seconds({});
  EXPECT_GT(seconds({.slow_ranks = {{3, 1.5, 1}}}), 1.2 * healthy);
  EXPECT_EQ(seconds({.slow_ranks = {{3, 1, 5}}}), healthy) << "no axis leaves the node";
  EXPECT_GT(seconds({.slow_ranks = {{3, 1, 5}}, .network_axes = {Axis::cp}}), healthy);
}

TEST(FastStep, OfAScheduleThatNeverEndsSaysWhoWaits) {
  PackedStep packed;
  packed.micro_batches.push_back({.documents = {{.length = 5}}});
  ModelSpec model;
  model.num_layers = 2;
  StepPlan plan =
      make_step_plan(packed, {.dims = {.pp = 2}, .schedule = {}, .stage_layers = {1, 1}}, EverythingCosts());
  std::erase_if(plan.schedule.ranks[0], [](const Action& action) { return action.kind == ActionKind::SEND_F; });
  try {
    fast_step(plan, model, EverythingCosts());
    FAIL() << "finished";
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0 waits at 0RECV_B0"));
  }
}

}  // namespace
}  // namespace ballast
