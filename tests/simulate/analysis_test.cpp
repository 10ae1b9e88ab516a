#include "ballast/simulate/analysis.h"

#include <gtest/gtest.h>

#include "ballast/simulate/engine.h"
#include "tests/simulate/simulate_fixture.h"

namespace ballast {
namespace {

// Rank 0: 10 ms, rank 1: 4 ms, then a gather of 2 ms; rank 1 works 1 ms more.
Timeline two_ranks() {
  return execute({.step = 5,
                  .dims = {.cp = 2},
                  .ranks = {{begin_span(forward()), compute(10_ms), gather(2_ms), end_span()},
                            {begin_span(forward()), compute(4_ms), gather(2_ms), compute(1_ms), end_span()}}},
                 "predicted");
}

TEST(Analysis, DividesARanksTimeIntoPartsThatAddUp) {
  const StepTime time = analyze(two_ranks()).at(0);
  EXPECT_EQ(time.step, 5);
  EXPECT_NEAR(time.step_seconds(), 13_ms, kClose);
  EXPECT_NEAR(time.ranks[0].work, 10_ms, kClose);
  EXPECT_NEAR(time.ranks[0].idle, 1_ms, kClose);
  EXPECT_NEAR(time.ranks[1].work, 5_ms, kClose);
  EXPECT_NEAR(time.ranks[1].wait, 6_ms, kClose);
  for (const RankTime& rank : time.ranks) {
    EXPECT_NEAR(rank.communication, 2_ms, kClose);
    EXPECT_NEAR(rank.work + rank.communication + rank.wait + rank.lease + rank.idle, 13_ms, kClose);
  }
  EXPECT_NEAR(time.seconds_by_kind.at(SpanKind::F), 15_ms, kClose);
  EXPECT_NEAR(time.seconds_by_kind.at(SpanKind::GATHER_KV), 4_ms, kClose);
}

TEST(Analysis, ImbalanceIsTheSlowestRanksShareTimesTheRanks) {
  EXPECT_NEAR(analyze(two_ranks()).at(0).imbalance(), 10.0 * 2 / 15, kClose);
  EXPECT_EQ(
      analyze(execute({.dims = {.cp = 2}, .ranks = {{gather(1_ms)}, {gather(1_ms)}}}, "predicted")).at(0).imbalance(),
      1);
}

TEST(Analysis, ExposedCommunicationIsAShareOfAllRanksTime) {
  EXPECT_NEAR(analyze(two_ranks()).at(0).exposed_communication_share(), 4.0 / 26, kClose);
}

TEST(Analysis, TellsTheCostOfACollectiveFromTheWaitThatWasRecordedForBoth) {
  // A measuring rank is blocked through the whole collective and records all of it as wait.
  Timeline measured = two_ranks();
  for (Span& span : measured.spans) {
    if (span.kind == SpanKind::GATHER_KV) span.wait = span.end - span.begin;
  }
  const StepTime time = analyze(measured).at(0);
  EXPECT_NEAR(time.ranks[0].communication, 2_ms, kClose);
  EXPECT_NEAR(time.ranks[0].wait, 0, kClose);
  EXPECT_NEAR(time.ranks[1].wait, 6_ms, kClose);
}

TEST(Analysis, KeepsTheLeaseApart) {
  Timeline measured{.source = "measured", .dims = {}, .spans = {forward()}};
  measured.spans[0].end = 10_ms;
  measured.spans[0].wait = 1_ms;
  measured.spans[0].lease = 2_ms;
  const StepTime time = analyze(measured).at(0);
  EXPECT_NEAR(time.ranks[0].work, 7_ms, kClose);
  EXPECT_NEAR(time.ranks[0].wait, 1_ms, kClose);
  EXPECT_NEAR(time.ranks[0].lease, 2_ms, kClose);
}

TEST(Analysis, OfARunThatDiedUsesTheWaitsThatWereRecorded) {
  Timeline measured = two_ranks();
  measured.spans.resize(2);  // rank 1 recorded nothing
  measured.spans[1].wait = 2_ms;
  const StepTime time = analyze(measured).at(0);
  EXPECT_NEAR(time.ranks[0].wait, 2_ms, kClose);
  EXPECT_NEAR(time.ranks[0].communication, 0, kClose);
  EXPECT_NEAR(time.ranks[1].idle, time.step_seconds(), kClose);
}

TEST(Analysis, PredictionErrorIsRelativeToTheMeasuredByStepAndKind) {
  Timeline measured = two_ranks();
  for (Span& span : measured.spans) {
    span.begin *= 2;
    span.end *= 2;
    span.wait *= 2;
  }
  const std::vector<PredictionError> errors = prediction_errors(two_ranks(), measured);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].step, 5);
  EXPECT_NEAR(errors[0].relative, -0.5, 1e-9);
  EXPECT_NEAR(errors[0].relative_by_kind.at(SpanKind::F), -0.5, 1e-9);
  measured.spans[0].step = 6;
  EXPECT_EQ(prediction_errors(Timeline{.source = "predicted", .dims = {.cp = 2}, .spans = {}}, measured).size(), 0U);
}

}  // namespace
}  // namespace ballast
