// Step plans: assignment to pipelines, order inside them, prediction of the whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "ballast/io/plan_json.h"
#include "ballast/planner/imbalance.h"
#include "ballast/planner/make_step_plan.h"
#include "ballast/planner/pipeline_order.h"
#include "ballast/schedule/bubble.h"
#include "ballast/schedule/make_schedule.h"
#include "ballast/simulate/analysis.h"
#include "ballast/simulate/predict.h"
#include "ballast/simulate/replay.h"

namespace ballast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

PackedStep step_of(const std::vector<std::vector<Tokens>>& lengths) {
  PackedStep step;
  std::int64_t arrival = 0;
  for (const auto& micro_batch : lengths) {
    MicroBatch& made = step.micro_batches.emplace_back();
    for (const Tokens length : micro_batch) {
      made.documents.push_back({.id = arrival, .arrival = arrival, .length = length});
      ++arrival;
    }
  }
  return step;
}

StepPlanSettings settings(ParallelDims dims, int layers, int virtual_stages = 1) {
  return {.dims = dims,
          .schedule = {virtual_stages > 1 ? "interleaved" : "1f1b", virtual_stages},
          .stage_layers = layers_per_stage(layers, dims.pp * virtual_stages)};
}

ModelSpec model_of(int layers) {
  ModelSpec model;
  model.num_layers = layers;
  return model;
}

std::vector<std::int64_t> ids(const std::vector<MicroBatch>& pipeline) {
  std::vector<std::int64_t> found;
  for (const MicroBatch& micro_batch : pipeline) {
    for (const Document& document : micro_batch.documents) found.push_back(document.id);
  }
  return found;
}

// Linear cost only, and all of it in the layers: every stage and token takes the same.
class LayersOnlyCost final : public CostModel {
 public:
  Seconds attention(Pass, const AttentionBlock&) const override { return 0; }
  Seconds layer(Pass pass, Tokens tokens) const override {
    return static_cast<double>(tokens) * (pass == Pass::forward ? 1 : 2);
  }
  Seconds reorder(Pass, Tokens) const override { return 0; }
  Seconds embedding(Pass, Tokens) const override { return 0; }
  Seconds head(Pass, Tokens) const override { return 0; }
  Seconds optimizer(std::int64_t parameters) const override { return static_cast<double>(parameters) * 1e-9; }
  Seconds collective(Collective, Axis, int ranks, Bytes bytes) const override {
    return ranks > 1 ? static_cast<double>(bytes) * communication_ : 0;
  }
  Bytes kv_bytes_per_token() const override { return 8; }
  Bytes activation_bytes_per_token() const override { return 4; }
  std::string name() const override { return "layers only"; }
  Seconds document_attention(Tokens) const override { return 0; }
  Seconds document_linear(Tokens length) const override { return 3.0 * static_cast<double>(length); }

  double communication_ = 0;
};

TEST(StepPlan, ContiguousAssignmentKeepsArrivalOrder) {
  StepPlanSettings plain = settings({.dp = 2}, 2);
  plain.assignment = PipelineAssignment::contiguous;
  const StepPlan plan = make_step_plan(step_of({{8}, {1}, {7}, {3}}), plain, LayersOnlyCost());
  EXPECT_THAT(ids(plan.micro_batches[0]), ElementsAre(0, 1));
  EXPECT_THAT(ids(plan.micro_batches[1]), ElementsAre(2, 3));
  EXPECT_THAT(plan.violations(), IsEmpty());
}

TEST(StepPlan, BalancedAssignmentGivesTheLongestFirstToTheLeastLoaded) {
  EXPECT_THAT(assign_balanced({8, 1, 7, 3}, 2), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  // The count is equal even where the load then is not.
  EXPECT_THAT(assign_balanced({9, 1, 1, 1}, 2), ElementsAre(ElementsAre(0, 3), ElementsAre(1, 2)));
  EXPECT_THAT(assign_balanced({1, 1, 1}, 2), ElementsAre(ElementsAre(0, 2), ElementsAre(1)));
}

TEST(StepPlan, APipelineWithoutEnoughMicroBatchesRunsEmptyOnes) {
  for (const PipelineAssignment assignment : {PipelineAssignment::contiguous, PipelineAssignment::balanced}) {
    StepPlanSettings uneven = settings({.dp = 2, .cp = 2}, 2);
    uneven.assignment = assignment;
    const StepPlan plan = make_step_plan(step_of({{8192}, {8192}, {8192}}), uneven, LayersOnlyCost());
    EXPECT_THAT(plan.violations(), IsEmpty());
    EXPECT_EQ(plan.micro_batches[0].size(), 2U);
    EXPECT_EQ(plan.num_tokens(), 3 * 8192);
    EXPECT_GT(analyze(predict(plan, model_of(2), LayersOnlyCost())).at(0).step_seconds(), 0);
  }
}

TEST(StepPlan, OfNoMicroBatchIsRefused) {
  try {
    make_step_plan({}, settings({}, 1), LayersOnlyCost());
    ADD_FAILURE();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("micro-batches = 0"));
  }
}

RC_GTEST_PROP(StepPlan, KeepsEveryDocumentOnceAtAnyLayoutAndPredicts, ()) {
  const ParallelDims dims{.dp = *rc::gen::inRange(1, 5), .pp = *rc::gen::inRange(1, 5), .cp = *rc::gen::inRange(1, 5)};
  const int virtual_stages = *rc::gen::inRange(1, 4);
  const auto lengths = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::vector<Tokens>>>(
      rc::gen::container<std::vector<Tokens>>(rc::gen::inRange<Tokens>(0, 300))));
  const PackedStep packed = step_of(lengths);
  StepPlanSettings chosen = settings(dims, dims.pp * virtual_stages + 1, virtual_stages);
  chosen.sharding =
      *rc::gen::element(std::string("per-sequence"), std::string("per-document"), std::string("adaptive"));
  chosen.assignment = *rc::gen::element(PipelineAssignment::contiguous, PipelineAssignment::balanced);
  const auto cost = make_synthetic_cost(1000, 1);

  const StepPlan plan = make_step_plan(packed, chosen, *cost);
  RC_ASSERT(plan.violations().empty());
  RC_ASSERT(make_step_plan(packed, chosen, *cost) == plan);
  RC_ASSERT(step_plan_from_json(to_json(plan), "text") == plan);
  std::vector<std::int64_t> all;
  for (const auto& pipeline : plan.micro_batches) {
    for (const std::int64_t id : ids(pipeline)) all.push_back(id);
  }
  std::sort(all.begin(), all.end());
  std::vector<std::int64_t> expected(all.size());
  std::iota(expected.begin(), expected.end(), 0);
  RC_ASSERT(all == expected);
  RC_ASSERT(packed.num_tokens() == plan.num_tokens());
  RC_ASSERT(cp_imbalance(plan, *cost) >= 1 - 1e-9);
  RC_ASSERT(cp_imbalance(plan, *cost) <= dims.cp + 1e-9);

  const Timeline predicted = predict(plan, model_of(dims.pp * virtual_stages + 1), *cost);
  RC_ASSERT(predicted.violations().empty());
  const Timeline replayed = replay(predicted);
  RC_ASSERT(replayed.spans.size() == predicted.spans.size());
  const Seconds step_seconds = analyze(predicted).at(0).step_seconds();
  RC_ASSERT(std::abs(analyze(replayed).at(0).step_seconds() - step_seconds) <= 1e-9 * (1 + step_seconds));
}

TEST(PipelineOrder, StartsAndEndsWithShortMicroBatchesIn1F1B) {
  const std::vector<Seconds> seconds{4, 1, 3, 2, 8, 5, 7, 6};
  EXPECT_THAT(best_pipeline_order(make_schedule({"1f1b", 1}, 4, 8), seconds), ElementsAre(1, 2, 5, 6, 4, 7, 0, 3));
}

TEST(PipelineOrder, IsArrivalOrderWhereNoneIsBetter) {
  EXPECT_THAT(best_pipeline_order(make_schedule({"1f1b", 1}, 1, 3), {3, 1, 2}), ElementsAre(0, 1, 2));
  EXPECT_THAT(best_pipeline_order(make_schedule({"1f1b", 1}, 4, 3), {2, 2, 2}), ElementsAre(0, 1, 2));
}

RC_GTEST_PROP(PipelineOrder, IsNeverWorseThanArrivalOrder, ()) {
  const int virtual_stages = *rc::gen::inRange(1, 3);
  const int micro_batches = *rc::gen::inRange(1, 10);
  const Schedule schedule = make_schedule({"interleaved", virtual_stages}, *rc::gen::inRange(1, 5), micro_batches);
  std::vector<Seconds> seconds;
  for (int m = 0; m < micro_batches; ++m) seconds.push_back(*rc::gen::inRange(0, 100));
  std::vector<std::size_t> order = best_pipeline_order(schedule, seconds);
  std::vector<Seconds> ordered;
  for (const std::size_t m : order) ordered.push_back(seconds[m]);
  RC_ASSERT(pipeline_seconds(schedule, ordered) <= pipeline_seconds(schedule, seconds));
  std::sort(order.begin(), order.end());
  for (std::size_t m = 0; m < order.size(); ++m) RC_ASSERT(order[m] == m);
}

TEST(Prediction, OfEqualStagesHasTheBubbleOfItsSchedule) {
  for (const auto& [ranks, virtual_stages, micro_batches] :
       {std::tuple{1, 1, 3}, {2, 1, 2}, {4, 1, 8}, {4, 2, 8}, {4, 2, 6}, {4, 3, 2}}) {
    SCOPED_TRACE("P " + std::to_string(ranks) + " V " + std::to_string(virtual_stages) + " N " +
                 std::to_string(micro_batches));
    const PackedStep packed = step_of(std::vector<std::vector<Tokens>>(static_cast<std::size_t>(micro_batches), {64}));
    const int layers = 2 * ranks * virtual_stages;
    const StepPlan plan = make_step_plan(packed, settings({.pp = ranks}, layers, virtual_stages), LayersOnlyCost());
    const StepTime time = analyze(predict(plan, model_of(layers), LayersOnlyCost())).at(0);
    EXPECT_NEAR(time.bubble_share, ideal_bubble_share(ranks, virtual_stages, micro_batches), 1e-9);
    if (virtual_stages == 1) {
      EXPECT_NEAR(time.bubble_share, (ranks - 1.0) / (micro_batches + ranks - 1), 1e-9);
    }
  }
}

TEST(Prediction, OfOneRankIsTheSumOfItsParts) {
  ModelSpec model = model_of(3);
  const LayersOnlyCost cost;
  const StepPlan plan = make_step_plan(step_of({{10, 20}, {30}}), settings({}, 3), cost);
  const StepTime time = analyze(predict(plan, model, cost)).at(0);
  EXPECT_NEAR(time.seconds_by_kind.at(SpanKind::F), 3 * 60.0, 1e-9);
  EXPECT_NEAR(time.seconds_by_kind.at(SpanKind::B), 3 * 120.0, 1e-9);
  EXPECT_NEAR(time.step_seconds(), 3 * 180.0 + static_cast<double>(model.num_parameters()) * 1e-9, 1e-6);
}

TEST(Prediction, ExchangesTheBytesOfItsTensors) {
  LayersOnlyCost cost;
  cost.communication_ = 1e-6;
  ModelSpec model = model_of(2);
  model.tied_head = true;
  const StepPlan plan = make_step_plan(step_of({{10}}), settings({.pp = 2, .cp = 2}, 2), cost);
  std::map<SpanKind, std::pair<Bytes, Seconds>> sent;  // bytes and cost over all ranks
  const Timeline predicted = predict(plan, model, cost);
  for (const Span& span : predicted.spans) {
    sent[span.kind].first += span.bytes;
    sent[span.kind].second += span.end - span.begin - span.wait;
  }
  EXPECT_EQ(sent[SpanKind::GATHER_KV].first, 2 * 10 * 8);              // each layer's, once over the cp axis
  EXPECT_NEAR(sent[SpanKind::GATHER_KV].second, 4 * 10 * 8e-6, 1e-9);  // four ranks wait for the whole
  // Gradients of 2 x 4 heads x 64 numbers in 4 bytes.
  EXPECT_EQ(sent[SpanKind::REDUCE_KV].first, 2 * 10 * 512 * 4);
  EXPECT_EQ(sent[SpanKind::SEND_F].first, 10 * 4);
  EXPECT_NEAR(sent[SpanKind::RECV_F].second, 10 * 4e-6, 1e-9);
  EXPECT_EQ(sent[SpanKind::SEND_B].first, 10 * 4);
  // Every parameter on both cp ranks, a tied embedding on both stages.
  EXPECT_EQ(sent[SpanKind::REDUCE_GRAD].first, 2 * 4 * (model.num_parameters() + model.embedding_parameters()));
  EXPECT_EQ(sent[SpanKind::REDUCE_TIED].first, 4 * 4 * model.embedding_parameters());
}

TEST(Prediction, OfARankWithNothingStillJoinsItsCollectives) {
  const StepPlan plan = make_step_plan(step_of({{1}, {}}), settings({.dp = 2, .pp = 2, .cp = 4}, 2), LayersOnlyCost());
  std::map<int, int> gathers;
  const Timeline predicted = predict(plan, model_of(2), LayersOnlyCost());
  for (const Span& span : predicted.spans) gathers[span.rank] += span.kind == SpanKind::GATHER_KV ? 1 : 0;
  EXPECT_EQ(gathers.size(), 16U);
  for (const auto& [rank, count] : gathers) EXPECT_EQ(count, 1) << rank;
}

TEST(Imbalance, IsTheSlowestMicroBatchTimesTheirNumberOverTheSum) {
  EXPECT_NEAR(micro_batch_imbalance(step_of({{30}, {10}}), LayersOnlyCost()), 1.5, 1e-12);
  EXPECT_EQ(micro_batch_imbalance(step_of({{}, {}}), LayersOnlyCost()), 1);
}

TEST(Imbalance, OverCpSeesThatPerSequenceShardingGivesOneRankTheLongKeys) {
  const auto cost = make_synthetic_cost(0, 1);
  StepPlanSettings sharded = settings({.cp = 2}, 1);
  sharded.sharding = "per-document";
  EXPECT_NEAR(cp_imbalance(make_step_plan(step_of({{4, 12}}), sharded, *cost), *cost), 1, 1e-9);
  sharded.sharding = "per-sequence";
  // Rank 0: the short document and positions 8 to 11 of the long one, 4^2 + 12^2 - 8^2. Rank 1: its first 8, 8^2.
  EXPECT_NEAR(cp_imbalance(make_step_plan(step_of({{4, 12}}), sharded, *cost), *cost), 96.0 * 2 / 160, 1e-9);
}

}  // namespace
}  // namespace ballast
