#include "ballast/planner/step_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ballast/base/random.h"
#include "ballast/planner/plan_ahead.h"

namespace ballast {
namespace {

using ::testing::HasSubstr;

RunSpec run_of(const std::string& packer) {
  RunSpec run;
  run.parallel = {.dp = 2, .pp = 2, .cp = 2};
  run.packing.packer = packer;
  run.packing.window = 256;
  run.packing.micro_batches = 4;
  if (packer == "wlb") {
    run.packing.queues = {128};
    run.packing.max_tokens = 320;
  }
  if (packer == "fixed-greedy") run.packing.global_batches = 2;
  return run;
}

DocumentStream documents(std::int64_t epochs = 0) {
  Random random(7);
  std::vector<Tokens> lengths;
  for (int i = 0; i < 100; ++i) lengths.push_back(static_cast<Tokens>(1 + random.below(i % 10 == 0 ? 256 : 40)));
  return {lengths, std::vector<int>(lengths.size(), 0), {.shuffle = true, .seed = 3, .num_epochs = epochs}};
}

std::vector<StepPlan> take(StepStream& stream, int steps) {
  std::vector<StepPlan> plans;
  for (int i = 0; i < steps; ++i) plans.push_back(stream.next().value().plan);
  return plans;
}

class Packers : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<CostModel> cost_ = make_synthetic_cost(100, 1);
  RunSpec run_ = run_of(GetParam());
};
INSTANTIATE_TEST_SUITE_P(StepStream, Packers, ::testing::Values("plain", "next-fit", "fixed-greedy", "wlb"));

TEST_P(Packers, GiveOneValidPlanAStepWithItsPrediction) {
  StepStream stream(run_, *cost_, documents());
  for (std::int64_t step = 0; step < 12; ++step) {
    const PlannedStep planned = stream.next().value();
    EXPECT_EQ(planned.plan.step, step);
    EXPECT_TRUE(planned.plan.violations().empty());
    EXPECT_GT(planned.predicted_seconds, 0);
    EXPECT_GE(planned.imbalance_micro_batch, 1 - 1e-9);
    EXPECT_GE(planned.imbalance_cp, 1 - 1e-9);
    EXPECT_TRUE(planned.predicted.violations().empty());
  }
}

TEST_P(Packers, ResumeAfterAnyStepWithTheSamePlans) {
  StepStream whole(run_, *cost_, documents());
  for (int stop = 0; stop < 9; ++stop) {
    const PackerState state = whole.state();
    StepStream resumed(run_, *cost_, documents());
    resumed.restore(state);
    const std::vector<StepPlan> after = take(resumed, 4);
    EXPECT_EQ(whole.next().value().plan, after[0]) << "stopped after " << stop;
    // A second resume too.
    StepStream again(run_, *cost_, documents());
    again.restore(whole.state());
    EXPECT_EQ(again.next().value().plan, after[1]) << "stopped after " << stop;
  }
}

TEST_P(Packers, GiveTheSameMicroBatchesUnderAnotherLayout) {
  StepStream two_pipelines(run_, *cost_, documents());
  take(two_pipelines, 3);
  RunSpec other = run_;
  other.parallel = {.dp = 1, .pp = 1, .cp = 4};
  StepStream one_pipeline(other, *cost_, documents());
  one_pipeline.restore(two_pipelines.state());
  const auto sorted = [](const StepPlan& plan) {
    std::vector<std::string> micro_batches;
    for (const auto& pipeline : plan.micro_batches) {
      for (const MicroBatch& micro_batch : pipeline) {
        std::string text;
        for (const Document& document : micro_batch.documents) text += to_string(document) + " ";
        micro_batches.push_back(text);
      }
    }
    std::sort(micro_batches.begin(), micro_batches.end());
    return micro_batches;
  };
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(sorted(one_pipeline.next().value().plan), sorted(two_pipelines.next().value().plan));
}

TEST_P(Packers, EndWithTheDataAndLoseNoToken) {
  StepStream stream(run_, *cost_, documents(1));
  Tokens tokens = 0;
  while (const std::optional<PlannedStep> planned = stream.next()) tokens += planned->plan.num_tokens();
  DocumentStream source = documents(1);
  Tokens expected = 0;
  while (const std::optional<Document> document = source.next()) expected += document->length;
  EXPECT_EQ(tokens, expected);
  EXPECT_FALSE(stream.next().has_value());
}

TEST_P(Packers, ResumeUpToTheEndOfTheDataWithTheSamePlans) {
  StepStream whole(run_, *cost_, documents(2));
  while (true) {
    StepStream resumed(run_, *cost_, documents(2));
    resumed.restore(whole.state());
    const std::optional<PlannedStep> expected = whole.next();
    const std::optional<PlannedStep> found = resumed.next();
    ASSERT_EQ(found.has_value(), expected.has_value());
    if (!expected) break;
    EXPECT_EQ(found->plan, expected->plan);
  }
}

TEST_P(Packers, PlanAheadGivesTheSameStepsAndTheStateAfterEach) {
  StepStream alone(run_, *cost_, documents(1));
  PlanAhead ahead(std::make_unique<StepStream>(run_, *cost_, documents(1)), 3);
  EXPECT_EQ(ahead.state(), alone.state());
  while (true) {
    const std::optional<PlannedStep> expected = alone.next();
    const std::optional<PlannedStep> planned = ahead.next();
    ASSERT_EQ(planned.has_value(), expected.has_value());
    if (!planned) break;
    EXPECT_EQ(planned->plan, expected->plan);
    EXPECT_EQ(planned->predicted, expected->predicted);
    EXPECT_EQ(ahead.state(), alone.state());
  }
  EXPECT_FALSE(ahead.next().has_value()) << "the end stays the end";
}

TEST(PlanAhead, CanBeDroppedWhileItPlans) {
  const auto cost = make_synthetic_cost(1, 1);
  PlanAhead ahead(std::make_unique<StepStream>(run_of("plain"), *cost, documents()), 2);
  EXPECT_EQ(ahead.next()->plan.step, 0);
}

TEST(PlanAhead, PassesOnWhatPlanningThrew) {
  const auto cost = make_synthetic_cost(1, 1);
  RunSpec run = run_of("plain");
  run.packing.window = 100;
  run.packing.oversize = Oversize::refuse;
  PlanAhead ahead(std::make_unique<StepStream>(run, *cost, documents(1)), 2);
  try {
    while (ahead.next()) {
    }
    ADD_FAILURE() << "documents longer than the window were accepted";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("100"));
  }
  EXPECT_FALSE(ahead.next().has_value());
}

}  // namespace
}  // namespace ballast
