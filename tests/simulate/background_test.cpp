// Transfers beside the compute: the engine's streams, and when ZeRO posts and waits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ballast/schedule/all_forward_all_backward.h"
#include "ballast/schedule/one_f_one_b.h"
#include "ballast/simulate/analysis.h"
#include "ballast/simulate/engine.h"
#include "ballast/simulate/zero.h"
#include "tests/simulate/simulate_fixture.h"

namespace ballast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr ParallelDims kTwoReplicas{.dp = 2};
constexpr Span kGradients{.kind = SpanKind::RESHARD, .stage = 0, .axis = Axis::dp_cp};

std::vector<Span> of_kind(const Timeline& timeline, SpanKind kind) {
  std::vector<Span> found;
  for (const Span& span : timeline.spans) {
    if (span.kind == kind) found.push_back(span);
  }
  return found;
}

TEST(Background, RunsBesideTheComputeOnceTheLastMemberHasPosted) {
  const Timeline timeline = execute({.dims = kTwoReplicas,
                                     .ranks = {{post(kGradients, 5_ms, 0), compute(10_ms), await(0, 0)},
                                               {compute(4_ms), post(kGradients, 5_ms, 0), compute(1_ms), await(0, 0)}}},
                                    "predicted");
  const std::vector<Span> transfers = of_kind(timeline, SpanKind::RESHARD);
  ASSERT_THAT(transfers, SizeIs(2));
  for (const Span& span : transfers) {
    EXPECT_NEAR(span.begin, 4_ms, kClose);
    EXPECT_NEAR(span.end, 9_ms, kClose);
  }
  const std::vector<Span> waits = of_kind(timeline, SpanKind::AWAIT);
  ASSERT_THAT(waits, SizeIs(1)) << "rank 0 finds it done";
  EXPECT_EQ(waits[0].rank, 1);
  EXPECT_NEAR(waits[0].end - waits[0].begin, 4_ms, kClose);
  EXPECT_EQ(timeline.violations(), Violations{});
}

TEST(Background, TransfersOfOneAxisFollowEachOther) {
  const std::vector<Op> ops = {post(kGradients, 5_ms, 0), post(kGradients, 3_ms, 1), await(0, 0), await(1, 0)};
  const Timeline timeline = execute({.dims = kTwoReplicas, .ranks = {ops, ops}}, "predicted");
  double last = 0;
  for (const Span& span : of_kind(timeline, SpanKind::RESHARD)) last = std::max(last, span.end);
  EXPECT_NEAR(last, 8_ms, kClose);
}

TEST(Background, AMemberThatNeverPostsIsWaitedForByName) {
  try {
    execute({.dims = kTwoReplicas, .ranks = {{post(kGradients, 1_ms, 0), await(0, 0)}, {compute(1_ms)}}}, "predicted");
    FAIL() << "finished";
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0 waits at AWAIT stage 0"));
  }
}

TEST(Background, CountsTheWaitAsCommunicationAndNotTheTransfer) {
  const std::vector<Op> ops = {begin_span(forward()),     compute(2_ms), end_span(), post(kGradients, 5_ms, 0),
                               begin_span(forward(0, 1)), compute(2_ms), end_span(), await(0, 0)};
  const StepTime time = analyze(execute({.dims = kTwoReplicas, .ranks = {ops, ops}}, "predicted")).at(0);
  for (const RankTime& rank : time.ranks) {
    EXPECT_NEAR(rank.work, 4_ms, kClose);
    EXPECT_NEAR(rank.communication, 3_ms, kClose);
  }
  EXPECT_NEAR(time.step_seconds(), 7_ms, kClose);
}

std::vector<int> stages(const std::vector<ZeroTransfer>& transfers, ZeroTransfer::Kind kind) {
  std::vector<int> found;
  for (const ZeroTransfer& transfer : transfers) {
    if (transfer.kind == kind) found.push_back(transfer.stage);
  }
  return found;
}

TEST(Zero, OneGathersEachStageOnceAndScattersItAfterItsLastBackward) {
  const Schedule schedule = all_forward_all_backward(1, 2, 2);  // 0F0 0F1 1F0 1F1 1B0 1B1 0B0 0B1
  const ZeroTransfers transfers = zero_transfers(schedule.ranks[0], 1);
  EXPECT_THAT(stages(transfers.before.at(0), ZeroTransfer::Kind::post_unshard), ElementsAre(0, 1));
  EXPECT_THAT(stages(transfers.before.at(2), ZeroTransfer::Kind::await), ElementsAre(1));
  EXPECT_THAT(stages(transfers.after.at(5), ZeroTransfer::Kind::post_reshard), ElementsAre(1));
  EXPECT_THAT(stages(transfers.after.at(7), ZeroTransfer::Kind::post_reshard), ElementsAre(0));
  EXPECT_THAT(transfers.at_end, SizeIs(2));
}

TEST(Zero, TwoScattersAfterEveryRunOfBackwards) {
  EXPECT_THAT(zero_transfers(all_forward_all_backward(1, 2, 3).ranks[0], 2).at_end, SizeIs(2)) << "once a stage";
  EXPECT_THAT(zero_transfers(one_f_one_b(2, 4).ranks[0], 2).at_end, SizeIs(3)) << "B0, B1, and B2 with B3";
}

TEST(Zero, ThreeGathersForEveryRunOfAStageOneRunAhead) {
  const ZeroTransfers transfers = zero_transfers(all_forward_all_backward(1, 2, 2).ranks[0], 3);
  // Runs: stage 0, stage 1 (forward and backward), stage 0.
  EXPECT_THAT(stages(transfers.before.at(0), ZeroTransfer::Kind::post_unshard), ElementsAre(0, 1));
  EXPECT_THAT(stages(transfers.before.at(2), ZeroTransfer::Kind::post_unshard), ElementsAre(0));
  EXPECT_THAT(stages(transfers.before.at(6), ZeroTransfer::Kind::await), ElementsAre(0));
}

TEST(Zero, NoneDoesNothing) { EXPECT_THAT(zero_transfers(one_f_one_b(2, 4).ranks[0], 0).at_end, IsEmpty()); }

}  // namespace
}  // namespace ballast
