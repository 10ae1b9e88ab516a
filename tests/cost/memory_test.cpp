// Bytes of a rank by part.
#include "ballast/cost/memory.h"

#include <gtest/gtest.h>

#include "ballast/ir/schedule.h"

namespace ballast {
namespace {

RunSpec run_of(int pp, int zero) {
  RunSpec run;
  run.model.num_layers = 4;
  run.model.vocab_size = 1000;
  run.parallel = {.dp = 2, .pp = pp, .cp = 1};
  run.zero = zero;
  run.cluster = "some.toml";  // not Ballast's own trainer
  run.training.precision = Precision::bfloat16;
  run.packing.packer = "wlb";
  run.packing.window = 1024;
  run.packing.max_tokens = 1536;
  return run;
}

Schedule one_in_flight(int pp) {
  Schedule schedule{.name = "1f1b", .num_ranks = pp, .virtual_stages = 1, .num_micro_batches = 1, .ranks = {}};
  for (int rank = 0; rank < pp; ++rank) {
    schedule.ranks.push_back({{rank, ActionKind::F, 0}, {rank, ActionKind::B, 0}});
  }
  return schedule;
}

TEST(Memory, HoldsTwoBytesOfWeightFourOfGradientAndTwelveOfOptimizerAParameter) {
  const RunSpec run = run_of(1, 0);
  const MemoryParts parts = memory_of_rank(run, one_in_flight(1), 0);
  EXPECT_EQ(parts.weights, 2 * run.model.num_parameters());
  EXPECT_EQ(parts.gradients, 4 * run.model.num_parameters());
  EXPECT_EQ(parts.optimizer, 12 * run.model.num_parameters());
}

TEST(Memory, OfTheOwnTrainerHasWeightsInFullNoLogitsAndWhatItSent) {
  RunSpec run = run_of(2, 0);
  run.cluster.clear();
  const MemoryParts parts = memory_of_rank(run, one_in_flight(2), 0);
  EXPECT_EQ(parts.optimizer, 2 * parts.weights);
  EXPECT_EQ(parts.gradients, parts.weights);
  EXPECT_EQ(parts.logits + parts.margin, 0);
  EXPECT_EQ(parts.exchange, 2 * 1536 * run.model.hidden_dim * 2) << "one sent, one posted ahead";
  EXPECT_GT(parts.temporary, 0);
}

TEST(Memory, SharesOutByZeroStage) {
  const MemoryParts none = memory_of_rank(run_of(1, 0), one_in_flight(1), 0);
  const MemoryParts one = memory_of_rank(run_of(1, 1), one_in_flight(1), 0);
  const MemoryParts three = memory_of_rank(run_of(1, 3), one_in_flight(1), 0);
  EXPECT_EQ(one.optimizer, none.optimizer / 2);
  EXPECT_EQ(one.gradients, none.gradients);
  EXPECT_EQ(three.gradients, none.gradients / 2);
  EXPECT_EQ(three.weights, none.weights / 2);
}

TEST(Memory, IsSizedByTheLongestMicroBatchAndWhatIsInFlight) {
  RunSpec run = run_of(1, 0);
  const Bytes at_cap = memory_of_rank(run, one_in_flight(1), 0).activations;
  run.packing.max_tokens = 3072;
  EXPECT_EQ(memory_of_rank(run, one_in_flight(1), 0).activations, 2 * at_cap);
  Schedule two = one_in_flight(1);
  two.num_micro_batches = 2;
  two.ranks = {{{0, ActionKind::F, 0}, {0, ActionKind::F, 1}, {0, ActionKind::B, 0}, {0, ActionKind::B, 1}}};
  run.packing.max_tokens = 1536;
  EXPECT_EQ(memory_of_rank(run, two, 0).activations, 2 * at_cap);
  run.recompute = "full";
  EXPECT_LT(memory_of_rank(run, two, 0).activations, at_cap);
}

TEST(Memory, FindsTheLongestMicroBatchThatFits) {
  RunSpec run = run_of(1, 0);
  const Schedule schedule = one_in_flight(1);
  const Bytes bytes = memory_of_rank(run, schedule, 0).total();
  const Tokens longest = longest_micro_batch(run, schedule, 0, bytes);
  EXPECT_EQ(longest, 1536) << "what it was sized for";
  run.packing.max_tokens = longest + 1;
  EXPECT_GT(memory_of_rank(run, schedule, 0).total(), bytes);
  EXPECT_EQ(longest_micro_batch(run, schedule, 0, 1000), 0) << "the weights alone are more";
}

TEST(Memory, PutsLogitsOnTheLastStageAndSumsItsParts) {
  const RunSpec run = run_of(2, 0);
  EXPECT_EQ(memory_of_rank(run, one_in_flight(2), 0).logits, 0);
  const MemoryParts last = memory_of_rank(run, one_in_flight(2), 1);
  EXPECT_EQ(last.logits, 2 * 1536 * 1000 * 4);
  Bytes sum = 0;
  for (const auto& [name, bytes] : last.named()) sum += bytes;
  EXPECT_EQ(sum, last.total());
}

}  // namespace
}  // namespace ballast
