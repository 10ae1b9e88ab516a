#include "ballast/ir/run_record.h"

#include <gtest/gtest.h>

namespace ballast {
namespace {

StepMetrics step(Tokens tokens, Seconds seconds, double loss) {
  StepMetrics metrics;
  metrics.tokens = tokens;
  metrics.step_seconds = seconds;
  metrics.loss = loss;
  return metrics;
}

TEST(RunRecord, CountsEveryStepInTotalsAndLeavesTheWarmUpOutOfSpeeds) {
  RunSummary summary;
  add_steps(summary, {step(100, 50, 5), step(100, 1, 4), step(300, 3, 3), step(200, 2, 2)}, warm_up_steps(4));
  EXPECT_EQ(summary.steps, 4);
  EXPECT_EQ(summary.tokens, 700);
  EXPECT_EQ(summary.loss_first, 5);
  EXPECT_EQ(summary.loss_last, 2);
  EXPECT_DOUBLE_EQ(summary.tokens_per_second, 100);
  EXPECT_DOUBLE_EQ(summary.step_seconds_mean, 2);
  EXPECT_DOUBLE_EQ(summary.step_seconds_p50, 2);
  EXPECT_DOUBLE_EQ(summary.step_seconds_max, 3);
}

TEST(RunRecord, CountsTheOnlyStepOfARunInItsSpeed) {
  RunSummary summary;
  add_steps(summary, {step(100, 50, 5)}, warm_up_steps(1));
  EXPECT_DOUBLE_EQ(summary.tokens_per_second, 2);
}

TEST(RunRecord, LeavesAFigureEmptyThatNoStepHas) {
  RunSummary summary;
  add_steps(summary, {step(100, 1, 5), step(100, 1, 5)}, 0);
  EXPECT_FALSE(summary.prediction_error);
  EXPECT_FALSE(summary.imbalance_measured);
  EXPECT_FALSE(summary.tokens_per_second_replayed);
}

TEST(RunRecord, HoldsThePredictionAgainstReplayedTimeWhereThereIsOne) {
  StepMetrics shared = step(100, 8, 5);
  shared.predicted_step_seconds = 1.5;
  shared.replayed_step_seconds = 2;
  StepMetrics own = step(100, 4, 5);
  own.predicted_step_seconds = 5;
  RunSummary summary;
  add_steps(summary, {shared, own, step(100, 1, 5)}, 0);
  ASSERT_TRUE(summary.prediction_error);
  EXPECT_DOUBLE_EQ(summary.prediction_error->mean, 0.25);
  EXPECT_DOUBLE_EQ(summary.prediction_error->max, 0.25);
}

}  // namespace
}  // namespace ballast
