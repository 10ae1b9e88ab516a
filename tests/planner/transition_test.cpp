// To change plans or not: only for a saving that is no noise and pays for the change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "ballast/planner/transition.h"

namespace ballast {
namespace {

using ::testing::HasSubstr;

TEST(StudentT, HasTheTailsThatTablesGive) {
  EXPECT_NEAR(student_t_quantile(0.01, 1), 31.8205, 1e-3);
  EXPECT_NEAR(student_t_quantile(0.01, 9), 2.8214, 1e-4);
  EXPECT_NEAR(student_t_quantile(0.05, 30), 1.6973, 1e-4);
  EXPECT_NEAR(student_t_tail(0, 5), 0.5, 1e-9);
  EXPECT_NEAR(student_t_tail(-2.8214, 9), 0.99, 1e-5);
}

TransitionQuestion question(double saving, double noise, int steps, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> off(0, noise);
  TransitionQuestion asked{.running = {}, .proposed = {}, .steps_left = 1000, .change_seconds = 100};
  for (int i = 0; i < steps; ++i) {
    asked.running.push_back(10 + off(random));
    asked.proposed.push_back(10 - saving + off(random));
  }
  return asked;
}

TEST(Transition, ChangesForASureSavingThatPays) {
  const TransitionAnswer answer = decide_transition(question(1, 0.2, 20, 1));
  EXPECT_TRUE(answer.change) << answer.why;
  EXPECT_NEAR(answer.saved_a_step, 1, 0.2);
  EXPECT_LT(answer.sure_saved_a_step, answer.saved_a_step);
  EXPECT_LT(answer.p_value, 1e-6);
  EXPECT_THAT(answer.why, HasSubstr("change: at least"));
}

TEST(Transition, StaysWhereTheChangeCostsMoreThanIsLeftToSave) {
  TransitionQuestion asked = question(1, 0.2, 20, 1);
  asked.steps_left = 120;  // saves about 110 s, the change costs 100: below the margin
  const TransitionAnswer answer = decide_transition(asked);
  EXPECT_FALSE(answer.change);
  EXPECT_THAT(answer.why, HasSubstr("against 150 s"));
}

TEST(Transition, StaysWhereStepsAreTooFewOrTheOtherIsSlower) {
  EXPECT_FALSE(decide_transition(question(5, 0.1, 2, 1)).change);
  const TransitionAnswer slower = decide_transition(question(-1, 0.1, 20, 1));
  EXPECT_FALSE(slower.change);
  EXPECT_THAT(slower.why, HasSubstr("no faster"));
}

// Of plans that are equally fast, no more than the level's share looks faster.
TEST(Transition, IsNotLedAstrayByNoise) {
  int changes = 0;
  constexpr int kTrials = 1000;
  for (unsigned seed = 0; seed < kTrials; ++seed) {
    TransitionQuestion asked = question(0, 1, 10, seed);
    asked.change_seconds = 0;
    if (decide_transition(asked).change) ++changes;
  }
  EXPECT_GT(changes, 0.3 * kTransitionLevel * kTrials);
  EXPECT_LT(changes, 2 * kTransitionLevel * kTrials);
}

}  // namespace
}  // namespace ballast
