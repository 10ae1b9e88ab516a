// Which long documents a step releases, on inputs a reader can check by hand.
#include "ballast/packing/release.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ballast {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

ReleaseProblem problem_of(std::vector<Candidate> candidates, int micro_batches) {
  return {.candidates = std::move(candidates),
          .micro_batches = micro_batches,
          .cap = 1000,
          .nominal = 100 * micro_batches,
          .delay_price = 0.03};
}

Candidate of_work(Seconds work) { return {.tokens = static_cast<Tokens>(work), .work = work}; }

TEST(Release, LevelsALongDocumentWithTwoOfHalfItsWork) {
  const Release release = choose_release(problem_of({of_work(80), of_work(40), of_work(40)}, 2));
  EXPECT_DOUBLE_EQ(release.imbalance, 1);
  EXPECT_NE(release.bin[0], release.bin[1]);
  EXPECT_EQ(release.bin[1], release.bin[2]);
  EXPECT_GE(release.bin[0], 0);
}

TEST(Release, HoldsADocumentThatNothingLevels) {
  ReleaseProblem problem = problem_of({of_work(80)}, 4);
  problem.short_tokens = 100;
  problem.short_work = 100;
  EXPECT_THAT(choose_release(problem).bin, ElementsAre(-1));
}

TEST(Release, ReleasesADocumentThatShortOnesFillUpTo) {
  ReleaseProblem problem = problem_of({of_work(80)}, 2);
  problem.short_tokens = 120;
  problem.short_work = 120;
  const Release release = choose_release(problem);
  EXPECT_GE(release.bin[0], 0);
  EXPECT_DOUBLE_EQ(release.imbalance, 1);
}

TEST(Release, HoldsTheDomainThatTheMixHasEnoughOf) {
  // Two pairs come out level alike; one of them is of the wrong domain.
  ReleaseProblem problem = problem_of({of_work(80), of_work(80), of_work(70), of_work(70)}, 2);
  problem.candidates[0].domain = problem.candidates[1].domain = 1;
  problem.cap = 100;  // one pair a step
  problem.mix = {1, 0};
  problem.short_domain_tokens = {0, 0};
  EXPECT_THAT(choose_release(problem).bin, ElementsAre(testing::Ge(0), testing::Ge(0), -1, -1));
  problem.mix_weight = 1;
  EXPECT_THAT(choose_release(problem).bin, ElementsAre(-1, -1, testing::Ge(0), testing::Ge(0)));
}

TEST(Release, ReleasesWhatMayWaitNoLonger) {
  ReleaseProblem problem = problem_of({of_work(80), of_work(10)}, 4);
  problem.candidates[0].must = true;
  EXPECT_GE(choose_release(problem).bin[0], 0);
}

TEST(Release, KeepsShortDocumentsOutOfAFullMicroBatch) {
  // The work of the 80 would take 80 short tokens more beside it, but only 10 fit.
  ReleaseProblem problem = problem_of({{.tokens = 90, .work = 80}, {.tokens = 10, .work = 160}}, 2);
  problem.cap = 100;
  problem.candidates[0].must = problem.candidates[1].must = true;
  problem.short_tokens = 80;
  problem.short_work = 80;
  // 80 + 10 of 80 beside 160, or 80 beside 160 + 70: what has no room elsewhere goes to the slowest.
  EXPECT_DOUBLE_EQ(choose_release(problem).imbalance, 230.0 * 2 / 320);
}

TEST(Release, KeepsAStepWithinItsTokenSwing) {
  ReleaseProblem problem = problem_of({of_work(90), of_work(90), of_work(90), of_work(90)}, 2);
  problem.token_swing = 0.2;  // 160 to 240 tokens
  const Release release = choose_release(problem);
  EXPECT_EQ(std::count_if(release.bin.begin(), release.bin.end(), [](int bin) { return bin >= 0; }), 2);
}

TEST(Release, NeverFillsAMicroBatchBeyondItsCap) {
  ReleaseProblem problem = problem_of({of_work(60), of_work(60), of_work(60)}, 1);
  problem.cap = 130;
  for (Candidate& candidate : problem.candidates) candidate.must = true;
  const Release release = choose_release(problem);
  EXPECT_EQ(std::count(release.bin.begin(), release.bin.end(), 0), 2);
}

}  // namespace
}  // namespace ballast
