#include "ballast/simulate/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "tests/simulate/simulate_fixture.h"

namespace ballast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr ParallelDims kTwoCp{.cp = 2};
constexpr ParallelDims kTwoStages{.pp = 2};

std::string failure(const Program& program) {
  try {
    execute(program, "predicted");
  } catch (const RunError& error) {
    return error.what();
  }
  return "";
}

TEST(Engine, WorkOfARankAddsUp) {
  const Timeline timeline = execute({.dims = {},
                                     .ranks = {{begin_span(forward()), compute(10_ms), compute(1_ms), end_span(),
                                                begin_span(forward(0, 1)), compute(10_ms), end_span()}}},
                                    "predicted");
  ASSERT_EQ(timeline.spans.size(), 2U);
  EXPECT_NEAR(timeline.spans[0].end, 11_ms, kClose);
  EXPECT_NEAR(timeline.spans[1].begin, 11_ms, kClose);
  EXPECT_NEAR(timeline.spans[1].end, 21_ms, kClose);
  EXPECT_EQ(timeline.source, "predicted");
}

TEST(Engine, ACollectiveBeginsWithItsLastMember) {
  const Timeline timeline =
      execute({.dims = kTwoCp, .ranks = {{compute(10_ms), gather(2_ms)}, {compute(4_ms), gather(2_ms), compute(1_ms)}}},
              "predicted");
  ASSERT_EQ(timeline.spans.size(), 2U);
  EXPECT_NEAR(timeline.spans[0].wait, 0, kClose);
  EXPECT_NEAR(timeline.spans[1].wait, 6_ms, kClose);
  EXPECT_NEAR(timeline.spans[0].end, 12_ms, kClose);
  EXPECT_NEAR(timeline.spans[1].end, 12_ms, kClose);
}

TEST(Engine, AWaitCountsToEverySpanAroundIt) {
  const Timeline timeline = execute(
      {.dims = kTwoCp,
       .ranks = {{begin_span(forward()), gather(1_ms), compute(3_ms), end_span()}, {compute(5_ms), gather(1_ms)}}},
      "predicted");
  EXPECT_EQ(timeline.spans[0].kind, SpanKind::F);
  EXPECT_NEAR(timeline.spans[0].wait, 5_ms, kClose);
  EXPECT_NEAR(timeline.spans[0].end, 9_ms, kClose);
  EXPECT_EQ(timeline.spans[1].kind, SpanKind::GATHER_KV);
  EXPECT_NEAR(timeline.spans[1].wait, 5_ms, kClose);
  EXPECT_THAT(timeline.violations(), IsEmpty());
}

TEST(Engine, AReceiveWaitsForItsMessageAndASendForNobody) {
  const Timeline timeline = execute(
      {.dims = kTwoStages, .ranks = {{compute(10_ms), send_f(1), compute(20_ms)}, {compute(1_ms), receive_f(0, 3_ms)}}},
      "predicted");
  const Span& send = timeline.spans[0];
  const Span& receive = timeline.spans[1];
  EXPECT_NEAR(send.end, 10_ms, kClose);
  EXPECT_NEAR(receive.wait, 9_ms, kClose);
  EXPECT_NEAR(receive.end, 13_ms, kClose);
}

TEST(Engine, AMessageThatIsThereCostsOnlyItsTransfer) {
  const Timeline timeline =
      execute({.dims = kTwoStages, .ranks = {{send_f(1)}, {compute(7_ms), receive_f(0, 3_ms)}}}, "predicted");
  EXPECT_NEAR(timeline.spans[1].wait, 0, kClose);
  EXPECT_NEAR(timeline.spans[1].end, 10_ms, kClose);
}

TEST(Engine, StepsCanBeginLater) {
  const Timeline timeline =
      execute({.step = 4, .dims = kTwoCp, .ranks = {{gather(1_ms)}, {gather(1_ms)}}}, "replayed", 100_ms);
  EXPECT_NEAR(timeline.spans[0].begin, 100_ms, kClose);
  EXPECT_EQ(timeline.spans[0].step, 4);
}

TEST(Engine, AGroupOfOneNeedsNobody) {
  EXPECT_NEAR(end_of(execute({.dims = {}, .ranks = {{gather(0), compute(1_ms), gather(0)}}}, "predicted")), 1_ms,
              kClose);
}

TEST(Engine, ADeadlockNamesWhoWaitsForWhat) {
  const Program crossed{
      .step = 3,
      .dims = kTwoStages,
      .ranks = {{communicate({.kind = SpanKind::RECV_B, .stage = 0, .micro_batch = 0, .peer = 1}, 0), send_f(1)},
                {receive_f(0), communicate({.kind = SpanKind::SEND_B, .stage = 1, .micro_batch = 0, .peer = 0}, 0)}}};
  EXPECT_THAT(failure(crossed), AllOf(HasSubstr("step 3 never finishes"),
                                      HasSubstr("rank 0 waits at RECV_B stage 0 micro-batch 0 for rank 1"),
                                      HasSubstr("rank 1 waits at RECV_F stage 1 micro-batch 0 for rank 0")));
  EXPECT_THAT(failure({.dims = kTwoCp, .ranks = {{gather(0)}, {}}}), HasSubstr("rank 0 waits at GATHER_KV for rank 1"));
}

TEST(Engine, RefusesAProgramWithViolations) {
  EXPECT_THAT(failure({.dims = kTwoCp, .ranks = {{}}}), HasSubstr("the program has 1 ranks, not 2"));
  EXPECT_THAT(failure({.dims = {}, .ranks = {{compute(-1)}}}), HasSubstr("a duration must be finite and 0 or more"));
  EXPECT_THAT(failure({.dims = {}, .ranks = {{begin_span(forward())}}}), HasSubstr("a span never ends"));
  EXPECT_THAT(failure({.dims = {}, .ranks = {{end_span()}}}), HasSubstr("ends that did not begin"));
  EXPECT_THAT(failure({.dims = {}, .ranks = {{send_f(5)}}}), HasSubstr("no such peer"));
  const Op tied = communicate({.kind = SpanKind::REDUCE_TIED, .axis = Axis::tied}, 0);
  EXPECT_THAT(failure({.dims = {.pp = 3}, .ranks = {{tied}, {tied}, {tied}}}),
              HasSubstr("rank 1 REDUCE_TIED: is not in its group"));
}

// Random rounds in which every rank works and then all meet: the end is the sum of the slowest of each round.
RC_GTEST_PROP(Engine, RoundsTakeAsLongAsTheirSlowestRanks, ()) {
  const int ranks = *rc::gen::inRange(1, 6);
  const int rounds = *rc::gen::inRange(1, 10);
  Program program{.dims = {.cp = ranks}, .ranks = {}};
  program.ranks.resize(static_cast<std::size_t>(ranks));
  Seconds expected = 0;
  for (int round = 0; round < rounds; ++round) {
    const Seconds cost = *rc::gen::inRange(0, 10) * 1e-3;
    Seconds slowest = 0;
    for (auto& ops : program.ranks) {
      const Seconds work = *rc::gen::inRange(0, 100) * 1e-3;
      slowest = std::max(slowest, work);
      ops.push_back(compute(work));
      ops.push_back(gather(cost));
    }
    expected += slowest + cost;
  }
  const Timeline timeline = execute(program, "predicted");
  RC_ASSERT(std::abs(end_of(timeline) - expected) < 1e-9);
  RC_ASSERT(execute(program, "predicted") == timeline);
  RC_ASSERT(timeline.violations().empty());
}

}  // namespace
}  // namespace ballast
