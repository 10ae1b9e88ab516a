#include "ballast/simulate/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "ballast/simulate/engine.h"
#include "tests/simulate/simulate_fixture.h"

namespace ballast {
namespace {

using ::testing::HasSubstr;

constexpr ParallelDims kTwoCp{.cp = 2};

Span measured_forward(int rank, Seconds begin, Seconds end, Seconds wait = 0, Seconds lease = 0) {
  return {.rank = rank,
          .kind = SpanKind::F,
          .stage = 0,
          .micro_batch = 0,
          .begin = begin,
          .end = end,
          .wait = wait,
          .lease = lease};
}

Span measured_gather(int rank, Seconds begin, Seconds end, Seconds wait = 0, Seconds lease = 0) {
  return {.rank = rank,
          .kind = SpanKind::GATHER_KV,
          .stage = 0,
          .micro_batch = 0,
          .layer = 0,
          .begin = begin,
          .end = end,
          .wait = wait,
          .lease = lease,
          .axis = Axis::cp};
}

// Two ranks on one core, each with 10 ms of work before a gather of 1 ms and 2 ms after it. Rank 1 gets the core when
// rank 0 blocks, and rank 0 gets it back when rank 1 has finished.
Timeline shared_core() {
  return {.source = "measured",
          .dims = kTwoCp,
          .spans = {measured_forward(0, 0_ms, 25_ms, 11_ms, 2_ms), measured_gather(0, 10_ms, 23_ms, 11_ms, 2_ms),
                    measured_forward(1, 10_ms, 23_ms, 1_ms, 0), measured_gather(1, 20_ms, 21_ms, 1_ms, 0)}};
}

void expect_same(const Timeline& a, const Timeline& b) {
  ASSERT_EQ(a.spans.size(), b.spans.size());
  for (std::size_t i = 0; i < a.spans.size(); ++i) {
    Span expected = a.spans[i];
    const Span& span = b.spans[i];
    EXPECT_NEAR(span.begin, expected.begin, 1e-9);
    EXPECT_NEAR(span.end, expected.end, 1e-9);
    EXPECT_NEAR(span.wait, expected.wait, 1e-9);
    expected.begin = span.begin;
    expected.end = span.end;
    expected.wait = span.wait;
    EXPECT_EQ(span, expected) << "span " << i;
  }
}

TEST(Replay, GivesEachRankACoreOfItsOwn) {
  const Timeline replayed = replay(shared_core());
  EXPECT_EQ(replayed.source, "replayed");
  EXPECT_NEAR(end_of(replayed), 13_ms, kClose);
  for (const Span& span : replayed.spans) {
    EXPECT_EQ(span.lease, 0);
    EXPECT_NEAR(span.wait, 0, kClose);
    EXPECT_NEAR(span.end - span.begin, span.kind == SpanKind::F ? 13_ms : 1_ms, kClose);
  }
}

TEST(Replay, KeepsAWaitForASlowerRank) {
  // Rank 1 really works 30 ms before the gather; rank 0 waits for it in the replay too.
  Timeline measured = shared_core();
  measured.spans = {measured_forward(0, 0_ms, 45_ms, 31_ms, 2_ms), measured_gather(0, 10_ms, 43_ms, 31_ms, 2_ms),
                    measured_forward(1, 10_ms, 43_ms, 1_ms, 0), measured_gather(1, 40_ms, 41_ms, 1_ms, 0)};
  const Timeline replayed = replay(measured);
  EXPECT_NEAR(end_of(replayed), 33_ms, kClose);
  EXPECT_NEAR(replayed.spans[0].wait, 20_ms, kClose);
}

TEST(Replay, CountsTimeBetweenSpansAsWork) {
  const Timeline measured{
      .source = "measured", .dims = {}, .spans = {measured_forward(0, 5_ms, 10_ms), measured_forward(0, 17_ms, 20_ms)}};
  const Timeline replayed = replay(measured);
  EXPECT_NEAR(replayed.spans[0].begin, 0, kClose);
  EXPECT_NEAR(replayed.spans[1].begin, 12_ms, kClose);
  EXPECT_NEAR(end_of(replayed), 15_ms, kClose);
}

TEST(Replay, TakesAWaitOfTheComputeSpanItselfOffItsWork) {
  const Timeline measured{.source = "measured", .dims = {}, .spans = {measured_forward(0, 0, 10_ms, 1_ms, 4_ms)}};
  EXPECT_NEAR(end_of(replay(measured)), 5_ms, kClose);
}

TEST(Replay, AReceiveCostsWhatPassedOnceBothSidesWereThere) {
  const auto message = [](SpanKind kind, int rank, int stage, int peer, Seconds begin, Seconds end, Seconds wait) {
    return Span{.rank = rank,
                .kind = kind,
                .stage = stage,
                .micro_batch = 0,
                .begin = begin,
                .end = end,
                .wait = wait,
                .peer = peer};
  };
  const Timeline measured{.source = "measured",
                          .dims = {.pp = 2},
                          .spans = {measured_forward(0, 0, 10_ms), message(SpanKind::SEND_F, 0, 0, 1, 10_ms, 11_ms, 0),
                                    message(SpanKind::RECV_F, 1, 1, 0, 2_ms, 14_ms, 12_ms)}};
  // Rank 1 began 2 ms in, but nothing held it up before: it waits the whole 11 ms now. The transfer took 3 ms.
  const Timeline replayed = replay(measured);
  EXPECT_NEAR(replayed.spans[2].wait, 11_ms, kClose);
  EXPECT_NEAR(end_of(replayed), 14_ms, kClose);
}

TEST(Replay, RunsSeveralStepsOneAfterAnother) {
  Timeline measured = shared_core();
  for (Span span : shared_core().spans) {
    span.step = 1;
    span.begin += 50_ms;
    span.end += 50_ms;
    measured.spans.push_back(span);
  }
  const Timeline replayed = replay(measured);
  EXPECT_NEAR(end_of(replayed), 26_ms, kClose);
  EXPECT_NEAR(replayed.spans.back().end - 13_ms, 11_ms, kClose);
}

TEST(Replay, OfAStepThatWasNotRecordedWholeIsAnError) {
  Timeline measured = shared_core();
  measured.spans.pop_back();
  try {
    replay(measured);
    ADD_FAILURE() << "a gather of one rank was replayed";
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0 waits at GATHER_KV stage 0 micro-batch 0 layer 0 for rank 1"));
  }
}

// Any program of layers with gathers and pipeline messages, zero durations included.
RC_GTEST_PROP(Replay, OfAPredictionGivesItBack, ()) {
  const ParallelDims dims{.pp = *rc::gen::inRange(1, 4), .cp = *rc::gen::inRange(1, 4)};
  const int micro_batches = *rc::gen::inRange(1, 4);
  const auto seconds = rc::gen::map(rc::gen::inRange(0, 12), [](int tenths) { return std::max(0, tenths - 3) * 1e-3; });
  std::map<int, Seconds> gather_cost;  // by micro-batch: alike on all members
  for (int m = 0; m < micro_batches; ++m) gather_cost[m] = *seconds;
  Program program{.dims = dims, .ranks = {}};
  for (int rank = 0; rank < dims.world_size(); ++rank) {
    const int stage = dims.coordinate(rank).pp;
    std::vector<Op>& ops = program.ranks.emplace_back();
    for (int m = 0; m < micro_batches; ++m) {
      if (stage > 0)
        ops.push_back(communicate({.kind = SpanKind::RECV_F, .stage = stage, .micro_batch = m, .peer = rank - dims.cp},
                                  *seconds));
      ops.push_back(begin_span({.kind = SpanKind::F, .stage = stage, .micro_batch = m}));
      ops.push_back(compute(*seconds));
      ops.push_back(communicate(
          {.kind = SpanKind::GATHER_KV, .stage = stage, .micro_batch = m, .layer = stage, .bytes = 5, .axis = Axis::cp},
          gather_cost[m]));
      ops.push_back(compute(*seconds));
      ops.push_back(end_span());
      if (stage + 1 < dims.pp)
        ops.push_back(communicate(
            {.kind = SpanKind::SEND_F, .stage = stage, .micro_batch = m, .bytes = 7, .peer = rank + dims.cp},
            *seconds));
    }
    ops.push_back(communicate({.kind = SpanKind::REDUCE_NORM, .axis = Axis::world}, 1_ms));
  }
  const Timeline predicted = execute(program, "predicted");
  expect_same(predicted, replay(predicted));
}

}  // namespace
}  // namespace ballast
