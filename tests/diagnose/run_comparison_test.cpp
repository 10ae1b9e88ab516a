#include "ballast/diagnose/run_comparison.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ballast/diagnose/run_story.h"

namespace ballast {
namespace {

std::vector<StepMetrics> steps_of(const std::vector<Seconds>& seconds, Tokens tokens = 1000) {
  std::vector<StepMetrics> steps;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    StepMetrics step;
    step.step = static_cast<std::int64_t>(i);
    step.tokens = tokens;
    step.step_seconds = seconds[i];
    step.loss = 5.0 - 0.1 * static_cast<double>(i);
    steps.push_back(step);
  }
  return steps;
}

RunRecord run_of(const std::string& name, const std::string& packer, const std::vector<Seconds>& seconds) {
  RunRecord run;
  run.name = name;
  run.summary.packer = packer;
  run.summary.model = "layers 2";
  run.steps = steps_of(seconds);
  return run;
}

TEST(SpeedUp, IsOfTotalsAndNotOfMeanRatios) {
  // 2000 tokens in 4 s against 2000 in 2 s, though the ratios by step are 1.5 and 3.
  const SpeedUp speed = speed_up(steps_of({1, 3}), steps_of({1.0 / 1.5, 2.0 - 1.0 / 1.5}), SpeedSource::measured);
  EXPECT_DOUBLE_EQ(speed.ratio, 2.0);
}

TEST(SpeedUp, HasNoSpreadWhereEveryStepAgrees) {
  const SpeedUp speed = speed_up(steps_of({3, 3, 3}), steps_of({2, 2, 2}), SpeedSource::measured);
  EXPECT_DOUBLE_EQ(speed.low, 1.5);
  EXPECT_DOUBLE_EQ(speed.high, 1.5);
}

TEST(SpeedUp, IsPairedWhereStepsHoldTheSameTokens) {
  // The same slow step in both: drawn together it cancels, so the spread is nil.
  const SpeedUp paired = speed_up(steps_of({2, 20, 2, 2}), steps_of({1, 10, 1, 1}), SpeedSource::measured);
  EXPECT_TRUE(paired.paired);
  EXPECT_DOUBLE_EQ(paired.low, 2.0);
  const SpeedUp apart =
      speed_up(steps_of({2, 20, 2, 2}), steps_of({1.001, 10.01, 1.001, 1.001}, 1001), SpeedSource::measured);
  EXPECT_FALSE(apart.paired);
  EXPECT_LT(apart.low, 1.5);
  EXPECT_GT(apart.high, 3.0);
}

TEST(SpeedUp, GivesTheSameSpreadEveryTime) {
  const auto base = steps_of({1, 2, 3, 4});
  const auto other = steps_of({4, 1, 2, 2});
  EXPECT_EQ(speed_up(base, other, SpeedSource::measured), speed_up(base, other, SpeedSource::measured));
}

TEST(PairSpeedUps, AreBaseAndOtherInTurn) {
  const PairSpeedUps pairs = pair_speed_ups({100, 120, 100, 150, 200, 220});
  EXPECT_EQ(pairs.ratios, (std::vector<double>{1.2, 1.5, 1.1}));
  EXPECT_DOUBLE_EQ(pairs.median, 1.2);
  EXPECT_DOUBLE_EQ(pairs.min, 1.1);
  EXPECT_DOUBLE_EQ(pairs.max, 1.5);
}

TEST(PairSpeedUps, TakeTheMiddleOfAnEvenNumber) { EXPECT_DOUBLE_EQ(pair_speed_ups({1, 2, 1, 4}).median, 3.0); }

TEST(CompareRuns, GoesByReplayOnlyWhereBothHaveItForEveryStep) {
  RunRecord base = run_of("base", "plain", {8, 8});
  RunRecord other = run_of("other", "wlb", {8, 8});
  for (StepMetrics& step : base.steps) step.replayed_step_seconds = 3;
  other.steps[0].replayed_step_seconds = 2;
  EXPECT_EQ(compare_runs(base, other).source, SpeedSource::measured);
  other.steps[1].replayed_step_seconds = 2;
  const RunComparison comparison = compare_runs(base, other);
  EXPECT_EQ(comparison.source, SpeedSource::replayed);
  EXPECT_DOUBLE_EQ(comparison.speed.ratio, 1.5);
}

TEST(CompareRuns, StatesWhatDiffersAndWhatWasMeantTo) {
  RunRecord base = run_of("base", "plain", {1});
  RunRecord other = run_of("other", "wlb", {1});
  other.summary.seed = 7;
  other.corpus.path = "data/b";
  const RunComparison comparison = compare_runs(base, other);
  ASSERT_EQ(comparison.differences.size(), 3u);
  EXPECT_EQ(comparison.differences[0], (Difference{"packer", "plain", "wlb", true}));
  EXPECT_EQ(comparison.differences[1], (Difference{"corpus", "", "data/b", false}));
  EXPECT_EQ(comparison.differences[2], (Difference{"seed", "0", "7", false}));
}

TEST(CompareRuns, TakesTheLossOfTheOtherMinusTheBase) {
  RunRecord base = run_of("base", "plain", {1, 1, 1, 1});
  RunRecord other = run_of("other", "wlb", {1, 1, 1, 1});
  for (StepMetrics& step : other.steps) step.loss += 0.25;
  EXPECT_DOUBLE_EQ(compare_runs(base, other).loss_difference, 0.25);
  EXPECT_DOUBLE_EQ(compare_runs(base, other).late_loss_difference, 0.25);
}

TEST(RunStory, SaysHowMuchFasterAndWhy) {
  RunEvidence plain{run_of("plain", "plain", {1.2, 1.2, 1.2}),
                    {.rank = 1, .kind = SpanKind::REDUCE_GRAD, .seconds = 0.8, .share = 0.23}};
  for (StepMetrics& step : plain.record.steps) step.imbalance_measured = 1.31;
  const RunEvidence balanced{run_of("balanced", "wlb", {1, 1, 1}), {}};
  const RunStory story = tell_story({plain, balanced});
  EXPECT_EQ(story.verdict, RunStory::Verdict::faster);
  EXPECT_EQ(story.headline,
            "balanced ran 1.20x as fast as plain: plain's slowest rank worked 1.31x the mean, rank 1 waited 23% of its "
            "time in REDUCE_GRAD.");
}

TEST(RunStory, AdmitsThatThereIsNoGain) {
  const RunStory story =
      tell_story({{run_of("plain", "plain", {1, 2, 1, 2, 1}), {}}, {run_of("balanced", "wlb", {2, 1, 1, 2, 1}), {}}});
  EXPECT_EQ(story.verdict, RunStory::Verdict::no_difference);
  EXPECT_EQ(story.headline, "No difference beyond the spread over steps: balanced ran at 1.00x plain's speed.");
}

TEST(RunStory, AdmitsALoss) {
  const RunStory story = tell_story({{run_of("plain", "plain", {1, 1}), {}}, {run_of("balanced", "wlb", {2, 2}), {}}});
  EXPECT_EQ(story.verdict, RunStory::Verdict::slower);
  EXPECT_EQ(story.headline, "balanced ran slower than plain, at 0.50x its speed.");
}

TEST(RunStory, WarnsWhereMoreThanThePackingDiffers) {
  RunEvidence other{run_of("balanced", "wlb", {1, 1}), {}};
  other.record.summary.model = "layers 4";
  const RunStory story = tell_story({{run_of("plain", "plain", {1, 1}), {}}, other});
  const std::string warning = "Careful: plain and balanced also differ in model (layers 2 against layers 4).";
  EXPECT_NE(std::find(story.details.begin(), story.details.end(), warning), story.details.end());
}

TEST(RunStory, OfOneRunNamesItsSpeedAndItsSource) {
  EXPECT_EQ(tell_story({{run_of("plain", "plain", {0.5, 0.5}), {}}}).headline,
            "plain trained 2,000 tokens a second (measured, 2 steps).");
}

TEST(RunStory, LeadsWithTheRunFurthestFromTheBase) {
  const RunStory story = tell_story(
      {{run_of("a", "plain", {3, 3}), {}}, {run_of("b", "wlb", {2.9, 2.9}), {}}, {run_of("c", "wlb", {2, 2}), {}}});
  EXPECT_EQ(story.headline, "c ran 1.50x as fast as a.");
}

}  // namespace
}  // namespace ballast
