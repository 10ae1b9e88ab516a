#include "ballast/diagnose/time_by_cause.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

namespace ballast {
namespace {

Span span(int rank, SpanKind kind, Seconds begin, Seconds end, Seconds wait = 0, Seconds lease = 0) {
  Span s;
  s.rank = rank;
  s.kind = kind;
  s.begin = begin;
  s.end = end;
  s.wait = wait;
  s.lease = lease;
  return s;
}

Timeline timeline_of(int ranks, std::vector<Span> spans) {
  return {"measured", {.dp = ranks, .pp = 1, .cp = 1}, std::move(spans)};
}

TEST(OwnTimes, TakeInnerSpansOutOfTheOuterOne) {
  // A forward of 10 s with a gather of 4 s inside it, 3 of which it waited: the recorder counts that wait to both.
  const Timeline timeline = timeline_of(1, {span(0, SpanKind::F, 0, 10, 3), span(0, SpanKind::GATHER_KV, 2, 6, 3)});
  const std::vector<OwnTime> own = own_times(timeline);
  EXPECT_DOUBLE_EQ(own[0].busy, 6);
  EXPECT_DOUBLE_EQ(own[0].wait, 0);
  EXPECT_DOUBLE_EQ(own[1].busy, 1);
  EXPECT_DOUBLE_EQ(own[1].wait, 3);
}

TEST(OwnTimes, HoldWhereOnlyTheInnerSpanCountsTheWait) {
  const Timeline timeline = timeline_of(1, {span(0, SpanKind::F, 0, 10), span(0, SpanKind::GATHER_KV, 2, 6, 3)});
  EXPECT_DOUBLE_EQ(own_times(timeline)[0].busy, 6);
}

TEST(OwnTimes, DoNotNestSpansThatOnlyTouch) {
  const Timeline timeline = timeline_of(1, {span(0, SpanKind::F, 0, 2), span(0, SpanKind::B, 2, 5)});
  EXPECT_DOUBLE_EQ(own_times(timeline)[0].busy, 2);
  EXPECT_DOUBLE_EQ(own_times(timeline)[1].busy, 3);
}

TEST(OwnTimes, KeepStepsApartThatBeginAtZeroEach) {
  Timeline timeline = timeline_of(1, {span(0, SpanKind::F, 0, 2), span(0, SpanKind::F, 0, 1)});
  timeline.source = "predicted";
  timeline.spans[1].step = 1;
  EXPECT_DOUBLE_EQ(own_times(timeline)[0].busy, 2);
}

TEST(TimeByCause, NamesWhatARankWaitedFor) {
  const Timeline timeline = timeline_of(2, {
                                               span(0, SpanKind::F, 0, 8),
                                               span(0, SpanKind::REDUCE_GRAD, 8, 9, 0),
                                               span(1, SpanKind::F, 0, 4),
                                               span(1, SpanKind::REDUCE_GRAD, 4, 9, 4),
                                           });
  const std::vector<CauseSeconds> ranks = time_by_cause(timeline);
  EXPECT_DOUBLE_EQ(ranks[0][Cause::forward], 8);
  EXPECT_DOUBLE_EQ(ranks[0][Cause::transfer], 1);
  EXPECT_DOUBLE_EQ(ranks[1][Cause::wait_gradients], 4);
  EXPECT_DOUBLE_EQ(ranks[1][Cause::transfer], 1);
  EXPECT_DOUBLE_EQ(ranks[1].work(), 4);
}

TEST(TimeByCause, KeepsTheCoreLeaseApartFromPeers) {
  const Timeline timeline = timeline_of(1, {span(0, SpanKind::RECV_F, 0, 10, 3, 5)});
  const CauseSeconds rank = time_by_cause(timeline)[0];
  EXPECT_DOUBLE_EQ(rank[Cause::wait_pipeline], 3);
  EXPECT_DOUBLE_EQ(rank[Cause::wait_lease], 5);
  EXPECT_DOUBLE_EQ(rank[Cause::transfer], 2);
}

TEST(TimeByCause, CountsAsIdleWhatNoSpanCovers) {
  const Timeline timeline = timeline_of(2, {span(0, SpanKind::F, 0, 10), span(1, SpanKind::F, 2, 5)});
  EXPECT_DOUBLE_EQ(time_by_cause(timeline)[1][Cause::idle], 7);
}

TEST(TimeByCause, LeavesSkippedStepsOut) {
  Timeline timeline = timeline_of(1, {span(0, SpanKind::F, 0, 10), span(0, SpanKind::F, 10, 11)});
  timeline.spans[1].step = 1;
  EXPECT_DOUBLE_EQ(time_by_cause(timeline, {0})[0].total(), 1);
}

TEST(LongestWait, FindsTheRankAndTheKind) {
  const Timeline timeline = timeline_of(2, {
                                               span(0, SpanKind::F, 0, 8),
                                               span(0, SpanKind::CONTROL, 8, 10, 1),
                                               span(1, SpanKind::F, 0, 4),
                                               span(1, SpanKind::REDUCE_GRAD, 4, 10, 5),
                                           });
  const LongestWait wait = longest_wait(timeline);
  EXPECT_EQ(wait.rank, 1);
  EXPECT_EQ(wait.kind, SpanKind::REDUCE_GRAD);
  EXPECT_DOUBLE_EQ(wait.share, 0.5);
}

TEST(LongestWait, IsNobodyWhereNobodyWaited) {
  EXPECT_EQ(longest_wait(timeline_of(1, {span(0, SpanKind::F, 0, 8)})).rank, -1);
}

TEST(TimeByCauseProperty, CausesOfEveryRankSumToTheStepsDuration) {
  rc::check([] {
    const int ranks = *rc::gen::inRange(1, 5);
    Timeline timeline = timeline_of(ranks, {});
    for (int rank = 0; rank < ranks; ++rank) {
      Seconds clock = *rc::gen::inRange(0, 10);
      const int count = *rc::gen::inRange(0, 12);
      for (int i = 0; i < count; ++i) {
        const Seconds length = *rc::gen::inRange(0, 100);
        const auto kind = static_cast<SpanKind>(*rc::gen::inRange(0, static_cast<int>(SpanKind::CHECKPOINT) + 1));
        const bool nests = is_compute(kind) && length > 4;
        const Seconds wait = nests ? length / 4 : length / 2;
        timeline.spans.push_back(span(rank, kind, clock, clock + length, wait, length / 8));
        if (nests)
          timeline.spans.push_back(
              span(rank, SpanKind::GATHER_KV, clock + 1, clock + 1 + length / 2, length / 4, length / 8));
        clock += length + *rc::gen::inRange(0, 3);
      }
    }
    Seconds total = 0;
    for (const StepExtent& extent : step_extents(timeline)) total += extent.duration();
    for (const CauseSeconds& rank : time_by_cause(timeline)) {
      for (const Seconds seconds : rank.seconds) RC_ASSERT(seconds >= 0);
      RC_ASSERT(std::abs(rank.total() - total) < 1e-6);
    }
  });
}

}  // namespace
}  // namespace ballast
