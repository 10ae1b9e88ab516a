#include "ballast/packing/queue_tuning.h"

#include <gtest/gtest.h>

#include "ballast/base/error.h"
#include "ballast/base/random.h"

namespace ballast {
namespace {

const std::unique_ptr<CostModel> kCost = make_synthetic_cost(100, 1);

std::vector<Tokens> heavy_tailed(int count) {
  Random random(5);
  std::vector<Tokens> lengths;
  for (int i = 0; i < count; ++i) lengths.push_back(static_cast<Tokens>(1 + random.below(i % 25 == 0 ? 1000 : 60)));
  return lengths;
}

PackingSpec wlb() {
  PackingSpec spec;
  spec.packer = "wlb";
  spec.window = 1000;
  spec.max_tokens = 1500;
  spec.micro_batches = 4;
  return spec;
}

TEST(QueueTuning, OffersAFrontierOnWhichMoreDelayBuysMoreBalance) {
  const QueueTuning tuning = tune_queues(wlb(), *kCost, heavy_tailed(20000));
  EXPECT_EQ(tuning.trials, 64);  // none, and every set of up to three of seven thresholds
  ASSERT_GT(tuning.frontier.size(), 1u);
  EXPECT_TRUE(tuning.frontier.front().queues.empty()) << "no queue, no delay";
  for (std::size_t i = 1; i < tuning.frontier.size(); ++i) {
    EXPECT_GT(tuning.frontier[i].delay_steps, tuning.frontier[i - 1].delay_steps);
    EXPECT_LT(tuning.frontier[i].imbalance, tuning.frontier[i - 1].imbalance);
  }
}

TEST(QueueTuning, ChoosesTheLeastImbalanceWithinTheDelayAskedFor) {
  const QueueTuning tuning = tune_queues(wlb(), *kCost, heavy_tailed(20000), 0.3);
  EXPECT_LE(tuning.chosen.delay_steps, 0.3);
  for (const QueueTrial& trial : tuning.frontier) {
    if (trial.delay_steps <= 0.3) {
      EXPECT_LE(tuning.chosen.imbalance, trial.imbalance);
    }
  }
}

TEST(QueueTuning, TakesNoQueueWhereNoDelayIsAllowed) {
  EXPECT_TRUE(tune_queues(wlb(), *kCost, heavy_tailed(5000), 0).chosen.queues.empty());
}

TEST(QueueTuning, WorksOnAWindowOfOneTokenAndOnASampleOfOneDocument) {
  PackingSpec spec = wlb();
  spec.window = spec.max_tokens = 1;
  EXPECT_GE(tune_queues(spec, *kCost, {1, 1, 1, 1, 1}).chosen.imbalance, 1);
}

}  // namespace
}  // namespace ballast
