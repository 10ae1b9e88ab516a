// Transfers that overlap share the link.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ballast/simulate/engine.h"
#include "ballast/simulate/shared_links.h"
#include "tests/simulate/simulate_fixture.h"

namespace ballast {
namespace {

constexpr Span kGradients{.kind = SpanKind::RESHARD, .stage = 0, .axis = Axis::dp_cp};
const LinkTiers kOneNetwork = {{Axis::cp, 1}, {Axis::dp_cp, 1}, {Axis::pp, 1}};

Seconds end_of_kind(const Timeline& timeline, SpanKind kind, int rank = 0) {
  Seconds end = 0;
  for (const Span& span : timeline.spans) {
    if (span.kind == kind && span.rank == rank) end = std::max(end, span.end);
  }
  return end;
}

TEST(SharedLinks, ATransferAloneTakesItsTime) {
  const Program program{.dims = {.cp = 2}, .ranks = {{compute(2_ms), gather(3_ms)}, {compute(5_ms), gather(3_ms)}}};
  const Timeline timeline = execute_on_shared_links(program, kOneNetwork, "predicted");
  EXPECT_EQ(timeline, execute(program, "predicted"));
  EXPECT_NEAR(end_of(timeline), 8_ms, kClose);
}

TEST(SharedLinks, TwoThatOverlapMoveAtHalfTheRateWhileTheyDo) {
  // Posted at 0, 6 ms alone; a gather of 2 ms comes at 1 ms: both at half rate from 1 to 5 ms, then the rest alone.
  const std::vector<Op> ops = {post(kGradients, 6_ms, 0), compute(1_ms), gather(2_ms), await(0, 0)};
  const Timeline timeline = execute_on_shared_links({.dims = {.cp = 2}, .ranks = {ops, ops}}, kOneNetwork, "predicted");
  EXPECT_NEAR(end_of_kind(timeline, SpanKind::GATHER_KV), 5_ms, kClose);
  EXPECT_NEAR(end_of_kind(timeline, SpanKind::RESHARD), 8_ms, kClose);
  EXPECT_NEAR(end_of_kind(timeline, SpanKind::AWAIT), 8_ms, kClose);
  EXPECT_EQ(timeline.violations(), Violations{});
}

TEST(SharedLinks, ThoseOfOtherTiersDoNot) {
  const std::vector<Op> ops = {post(kGradients, 6_ms, 0), compute(1_ms), gather(2_ms), await(0, 0)};
  const Program program{.dims = {.cp = 2}, .ranks = {ops, ops}};
  const Timeline timeline = execute_on_shared_links(program, {{Axis::cp, 0}, {Axis::dp_cp, 1}}, "predicted");
  EXPECT_NEAR(end_of_kind(timeline, SpanKind::GATHER_KV), 3_ms, kClose);
  EXPECT_NEAR(end_of_kind(timeline, SpanKind::RESHARD), 6_ms, kClose);
}

TEST(SharedLinks, AnExchangeGoesAtThePaceOfItsMostCrowdedMember) {
  // Rank 0 receives while its group reduces in the background; ranks 2 and 3 have nothing else to do and wait with it.
  const ParallelDims dims{.dp = 2, .pp = 2};
  const Span gradients{.kind = SpanKind::RESHARD, .stage = 0, .axis = Axis::dp_cp};
  const Program program{.dims = dims,
                        .ranks = {{post(gradients, 4_ms, 0), send_f(1), await(0, 0)},
                                  {receive_f(0, 4_ms)},
                                  {post(gradients, 4_ms, 0), await(0, 0)},
                                  {}}};
  const Timeline timeline = execute_on_shared_links(program, kOneNetwork, "predicted");
  EXPECT_NEAR(end_of_kind(timeline, SpanKind::RECV_F, 1), 8_ms, kClose);
  EXPECT_NEAR(end_of_kind(timeline, SpanKind::RESHARD, 2), 8_ms, kClose);
}

TEST(SharedLinks, AMessageOutAndOneInDoNotMeet) {
  const ParallelDims dims{.pp = 3};
  const auto message = [](SpanKind kind, int stage, int peer, Seconds seconds) {
    return communicate({.kind = kind, .stage = stage, .micro_batch = 0, .peer = peer}, seconds);
  };
  const Program program{.dims = dims,
                        .ranks = {{message(SpanKind::SEND_F, 0, 1, 0)},
                                  {message(SpanKind::SEND_F, 1, 2, 0), message(SpanKind::RECV_F, 1, 0, 3_ms)},
                                  {message(SpanKind::RECV_F, 2, 1, 3_ms)}}};
  EXPECT_NEAR(end_of(execute_on_shared_links(program, kOneNetwork, "predicted")), 3_ms, kClose);
}

TEST(SharedLinks, OfAProgramThatNeverEndsSaysWhoWaits) {
  EXPECT_THROW(execute_on_shared_links({.dims = {.cp = 2}, .ranks = {{gather(1_ms)}, {}}}, kOneNetwork, "predicted"),
               RunError);
}

}  // namespace
}  // namespace ballast
