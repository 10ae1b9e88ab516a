// What failures, checkpoints and a shared store leave of a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "ballast/simulate/goodput.h"

namespace ballast {
namespace {

constexpr Seconds kDay = 86400;

GoodputSubject undisturbed() {
  return {.step_seconds = {10},
          .step_tokens = {1000},
          .gpus = 1000,
          .checkpoint_bytes = 1000,
          .faults = {},
          .storage = {.bytes_per_second = 10, .loader_bytes_per_token = 0},
          .horizon = 10 * kDay};
}

Seconds all_of(const Goodput& g) { return g.useful + g.loading + g.checkpoints + g.lost + g.restarts; }

TEST(Goodput, WithoutFailuresLosesOnlyTheCheckpoints) {
  const Goodput g = simulate_goodput(undisturbed(), 30, 1);  // 300 s of steps, 100 s of writing
  EXPECT_NEAR(g.share(), 0.75, 0.001);
  EXPECT_NEAR(g.checkpoints / all_of(g), 0.25, 0.001);
  EXPECT_EQ(g.failures, 0);
  EXPECT_NEAR(g.tokens, g.useful / 10 * 1000, 1);
}

TEST(Goodput, BackgroundCheckpointsCostNothingWhereTheStoreHasNoOtherUse) {
  GoodputSubject subject = undisturbed();
  subject.storage.background_checkpoints = true;
  EXPECT_NEAR(simulate_goodput(subject, 30, 1).share(), 1, 1e-4);
  const Goodput often = simulate_goodput(subject, 5, 1);  // 100 s of writing every 50 s: the next has to wait
  EXPECT_NEAR(often.share(), 0.5, 0.01);
  EXPECT_GT(often.checkpoints, 0);
}

TEST(Goodput, ACheckpointBeingWrittenSlowsTheReadingOfDocuments) {
  GoodputSubject subject = undisturbed();
  subject.storage.loader_bytes_per_token = 0.08;  // 80 bytes a step: 8 s alone, 16 s beside a checkpoint
  EXPECT_EQ(simulate_goodput(subject, 1000, 1).loading, 0) << "read beside the step";
  subject.storage.background_checkpoints = true;
  const Goodput g = simulate_goodput(subject, 100, 1);
  // 1,000 bytes at half of 10 bytes/s while 80 bytes are read, then alone for what is left of a step's 16 s.
  EXPECT_GT(g.loading, 0);
  EXPECT_NEAR(g.loading / g.useful, 6.0 * 13 / 1000, 0.02);
}

TEST(Goodput, IsBestNearYoungsRule) {
  GoodputSubject subject = undisturbed();
  subject.storage.bytes_per_second = 100;       // 10 s a checkpoint
  subject.faults.failures_per_gpu_day = 24e-3;  // one an hour
  subject.horizon = 100 * kDay;
  const double young = young_interval_steps(subject);
  EXPECT_NEAR(young, std::sqrt(2 * 10 * 3600.0) / 10, 1e-6);
  double best = 0;
  std::int64_t best_interval = 0;
  for (const std::int64_t interval : intervals_to_try(subject)) {
    const Goodput g = simulate_goodput(subject, interval, 3);
    if (g.share() > best) {
      best = g.share();
      best_interval = interval;
    }
  }
  EXPECT_GT(best_interval, young / 2.1);
  EXPECT_LT(best_interval, young * 2.1);
  EXPECT_NEAR(best, 1 - std::sqrt(2 * 10 / 3600.0), 0.01) << "Young's estimate of the loss, to first order";
}

TEST(Goodput, HasAsManyFailuresAsTheRateSays) {
  GoodputSubject subject = undisturbed();
  subject.gpus = 16384;
  subject.faults = {.failures_per_gpu_day = 419 / 54.0 / 16384, .restart_seconds = 600};  // Llama 3
  subject.horizon = 54 * kDay;
  const Goodput g = simulate_goodput(subject, 30, 20);
  EXPECT_NEAR(g.failures, 419, 20);
  EXPECT_NEAR(g.restarts, g.failures * 700, 0.06 * g.restarts)
      << "600 s and reading the checkpoint, cut short by the next";
}

TEST(Goodput, OfARunThatFailsFasterThanItRestartsEnds) {
  GoodputSubject subject = undisturbed();
  subject.faults = {.failures_per_gpu_day = 1, .restart_seconds = 3600};
  const Goodput g = simulate_goodput(subject, 10, 1);
  EXPECT_LT(g.share(), 0.05);
  EXPECT_NEAR(all_of(g), subject.horizon, 1);
}

RC_GTEST_PROP(Goodput, PartsAddUpToTheHorizon, ()) {
  GoodputSubject subject = undisturbed();
  subject.step_seconds = {3, 7, 20};
  subject.step_tokens = {100, 200, 700};
  subject.horizon = 2 * kDay;
  subject.storage.background_checkpoints = *rc::gen::arbitrary<bool>();
  subject.storage.bytes_per_second = *rc::gen::inRange(0, 300);
  subject.storage.loader_bytes_per_token = *rc::gen::inRange(0, 5);
  subject.faults.failures_per_gpu_day = 1e-3 * *rc::gen::inRange(0, 100);
  subject.faults.restart_seconds = *rc::gen::inRange(0, 1000);
  subject.seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
  const Goodput g = simulate_goodput(subject, *rc::gen::inRange(1, 200), 2);
  RC_ASSERT(std::abs(all_of(g) - subject.horizon) < 60 + subject.step_seconds[2]);
  RC_ASSERT(std::min({g.useful, g.loading, g.checkpoints, g.lost, g.restarts}) >= 0);
}

}  // namespace
}  // namespace ballast
