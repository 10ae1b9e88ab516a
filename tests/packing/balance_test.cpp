// Measures of a packing, by hand and by property.
#include "ballast/packing/balance.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace ballast {
namespace {

const std::unique_ptr<CostModel> kSquares = make_synthetic_cost(0, 1);

PackedStep step_of(std::int64_t number, const std::vector<std::vector<Tokens>>& lengths) {
  PackedStep step{.step = number, .micro_batches = {}};
  for (const auto& of_micro_batch : lengths) {
    step.micro_batches.emplace_back();
    for (const Tokens length : of_micro_batch) step.micro_batches.back().documents.push_back({.length = length});
  }
  return step;
}

TEST(Imbalance, IsTheSlowestTimesNOverTheTotal) {
  EXPECT_DOUBLE_EQ(imbalance({1, 1, 1, 1}), 1);
  EXPECT_DOUBLE_EQ(imbalance({3, 1, 0, 0}), 3);
  EXPECT_DOUBLE_EQ(imbalance({0, 0}), 1) << "nothing to do is done in balance";
  EXPECT_DOUBLE_EQ(imbalance(predicted_work(step_of(0, {{3}, {1, 2}, {}}), *kSquares)), 9.0 * 3 / 14);
}

TEST(LowerBound, IsTheEvenShareOrTheLongestDocument) {
  EXPECT_DOUBLE_EQ(lower_bound(step_of(0, {{2, 2}, {}}), *kSquares), 4);
  EXPECT_DOUBLE_EQ(lower_bound_gap(step_of(0, {{2, 2}, {}}), *kSquares), 1) << "8 where 4 would do";
  EXPECT_DOUBLE_EQ(lower_bound(step_of(0, {{3}, {1}}), *kSquares), 9);
  EXPECT_DOUBLE_EQ(lower_bound_gap(step_of(0, {{3}, {1}}), *kSquares), 0) << "no packing is faster than its longest";
  EXPECT_DOUBLE_EQ(lower_bound_gap(step_of(0, {{}, {}}), *kSquares), 0);
}

TEST(TokenDelay, CountsTokensByHowLateTheyAreOverallAndByDomain) {
  TokenDelay delay;
  PackedStep step = step_of(5, {{98, 1}, {1}});
  step.micro_batches[0].documents[0].due_step = 5;
  step.micro_batches[0].documents[1].due_step = 4;
  step.micro_batches[1].documents[0].due_step = 2;
  step.micro_batches[1].documents[0].domain = 7;
  delay.add(step);
  EXPECT_EQ(delay.overall(), (Quantiles{.mean = 0.04, .p50 = 0, .p99 = 1, .max = 3}));
  EXPECT_EQ(delay.by_domain().at(0), (Quantiles{.mean = 1.0 / 99, .p50 = 0, .p99 = 1, .max = 1}));
  EXPECT_EQ(delay.by_domain().at(7), (Quantiles{.mean = 3, .p50 = 3, .p99 = 3, .max = 3}));
  EXPECT_EQ(TokenDelay().overall(), Quantiles{});
}

TEST(TokenDelay, DoesNotLetEarlyTokensHideLateOnes) {
  TokenDelay delay;
  PackedStep step = step_of(5, {{1}, {1}});
  step.micro_batches[0].documents[0].due_step = 7;
  step.micro_batches[1].documents[0].due_step = 3;
  delay.add(step);
  EXPECT_EQ(delay.overall(), (Quantiles{.mean = 1, .p50 = 0, .p99 = 2, .max = 2}));
}

TEST(DomainMix, IsTheShareOfAStepsTokensThatAreOfTheWrongDomain) {
  DomainMix mix;
  PackedStep step = step_of(0, {{6}, {2}});
  step.micro_batches[1].documents[0].domain = 1;
  mix.add(step);
  EXPECT_DOUBLE_EQ(mix.mean_apart(), 0) << "one step has the mix of all";
  step.micro_batches[0].documents[0].domain = 1;
  step.micro_batches[1].documents[0].domain = 0;
  mix.add(step);  // in all 8 of each: each step has 2 tokens of 8 of the wrong one
  EXPECT_DOUBLE_EQ(mix.mean_apart(), 0.25);
  EXPECT_DOUBLE_EQ(DomainMix().mean_apart(), 0);
}

RC_GTEST_PROP(Imbalance, LiesBetweenOneAndTheNumberOfMicroBatches, ()) {
  const auto lengths = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::vector<Tokens>>>(
      rc::gen::container<std::vector<Tokens>>(rc::gen::inRange<Tokens>(0, 1000))));
  const PackedStep step = step_of(0, lengths);
  const std::vector<Seconds> work = predicted_work(step, *kSquares);
  RC_ASSERT(imbalance(work) >= 1 - 1e-12);
  RC_ASSERT(imbalance(work) <= static_cast<double>(work.size()) + 1e-9);
  RC_ASSERT(*std::max_element(work.begin(), work.end()) >= lower_bound(step, *kSquares) * (1 - 1e-12));
}

}  // namespace
}  // namespace ballast
