// What each packer does on small inputs that a reader can check by hand, and the traps that other packers fell into.
#include <gtest/gtest.h>

#include "ballast/base/random.h"
#include "ballast/packing/balance.h"
#include "tests/packing/streams.h"

namespace ballast {
namespace {

using testing::lengths_of;
using testing::pack_all;
using Lengths = std::vector<std::vector<Tokens>>;

PackingSpec spec_of(const std::string& packer, Tokens window, int micro_batches) {
  PackingSpec spec;
  spec.packer = packer;
  spec.window = window;
  spec.micro_batches = micro_batches;
  return spec;
}

const std::unique_ptr<CostModel> kSquares = make_synthetic_cost(0, 1);

TEST(PlainPacker, CutsTheDocumentThatCrossesTheWindow) {
  const auto steps = pack_all(spec_of("plain", 10, 2), *kSquares, {7, 6, 7, 4});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(lengths_of(steps[0]), (Lengths{{7, 3}, {3, 7}}));
  EXPECT_EQ(lengths_of(steps[1]), (Lengths{{4}, {}}));
  const Document& head = steps[0].micro_batches[0].documents[1];
  const Document& tail = steps[0].micro_batches[1].documents[0];
  EXPECT_EQ(to_string(head), "1[0,3)");
  EXPECT_EQ(to_string(tail), "1[3,6)*");
  EXPECT_EQ(head.num_labels(), 3) << "the token after the cut is in the corpus, so the cut costs no label";
  EXPECT_EQ(tail.num_labels(), 2);
}

TEST(PlainPacker, ADocumentCutAtTheEndOfAStepIsNotLate) {
  const auto steps = pack_all(spec_of("plain", 10, 1), *kSquares, {7, 7});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].micro_batches[0].documents[0].due_step, 1);
}

TEST(NextFitPacker, KeepsDocumentsWholeInArrivalOrder) {
  const auto steps = pack_all(spec_of("next-fit", 10, 2), *kSquares, {7, 6, 3, 7, 4});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(lengths_of(steps[0]), (Lengths{{7}, {6, 3}}));
  EXPECT_EQ(lengths_of(steps[1]), (Lengths{{7}, {4}}));
}

TEST(FixedGreedyPacker, BalancesTheSumOfSquaresOfWholeDocuments) {
  const auto steps = pack_all(spec_of("fixed-greedy", 10, 2), *kSquares, {6, 1, 5, 2, 3, 3});
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(lengths_of(steps[0]), (Lengths{{6, 3, 1}, {5, 3, 2}}));
}

TEST(FixedGreedyPacker, PacksOverSeveralGlobalBatchesAtOnce) {
  PackingSpec spec = spec_of("fixed-greedy", 10, 1);
  spec.global_batches = 2;
  // In arrival order the first step would hold 10, the second five twos; two batches together leave the choice.
  const auto steps = pack_all(spec, *kSquares, {9, 1, 5, 5});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(lengths_of(steps[0]), (Lengths{{9, 1}}));
  EXPECT_EQ(lengths_of(steps[1]), (Lengths{{5, 5}}));
}

TEST(FixedGreedyPacker, CarriesWhatFitsNoWindow) {
  const auto steps = pack_all(spec_of("fixed-greedy", 10, 1), *kSquares, {6, 6, 4});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(lengths_of(steps[0]), (Lengths{{6}}));
  EXPECT_EQ(lengths_of(steps[1]), (Lengths{{6, 4}})) << "the left-over goes first";
}

TEST(WlbPacker, FillsTheMicroBatchOfLeastWorkWithManyShortDocuments) {
  PackingSpec spec = spec_of("wlb", 8, 2);
  spec.max_tokens = 12;
  const auto steps = pack_all(spec, *kSquares, {8, 1, 1, 1, 1, 1, 1, 1, 1});
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(lengths_of(steps[0]), (Lengths{{8}, {1, 1, 1, 1, 1, 1, 1, 1}}));
}

TEST(WlbPacker, FallsBackToTheFewestTokensWhereTheLeastWorkIsFull) {
  PackingSpec spec = spec_of("wlb", 8, 2);
  // 6 against 2 2 2 2: the second has less work but no room for the last 2.
  const auto steps = pack_all(spec, *kSquares, {6, 2, 2, 2, 2, 2});
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(lengths_of(steps[0]), (Lengths{{6, 2}, {2, 2, 2, 2}}));
}

TEST(WlbPacker, LeavesOverWhatFitsNowhereAndPacksItFirstNextTime) {
  const auto steps = pack_all(spec_of("wlb", 10, 2), *kSquares, {6, 6, 6, 5, 5});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(lengths_of(steps[0]), (Lengths{{6}, {6}}));
  EXPECT_EQ(lengths_of(steps[1]), (Lengths{{6}, {5, 5}}));
}

TEST(WlbPacker, HoldsLongDocumentsUntilEachMicroBatchGetsOne) {
  PackingSpec spec = spec_of("wlb", 10, 2);
  spec.max_tokens = 12;
  spec.queues = {8};
  const auto cost = make_synthetic_cost(0, 1);
  PackedStream stream(spec, *cost, testing::source_of({8, 6, 6, 9, 2, 2, 2, 2, 2, 2, 2, 2}));
  EXPECT_EQ(lengths_of(*stream.next()), (Lengths{{6}, {6}})) << "8 waits for a second long document";
  EXPECT_EQ(stream.state().queues[0].size(), 1u);
  EXPECT_EQ(lengths_of(*stream.next()), (Lengths{{9, 2}, {8, 2, 2}}));
}

TEST(WlbPacker, ReleasesAQueuedDocumentAfterTheLongestDelay) {
  PackingSpec spec = spec_of("wlb", 4, 1);
  spec.micro_batches = 2;
  spec.queues = {4};
  const std::vector<Tokens> lengths{4, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
  const auto step_of_the_long_one = [&](int max_delay) {
    spec.max_delay = max_delay;
    for (const PackedStep& step : pack_all(spec, *kSquares, lengths)) {
      for (const MicroBatch& micro_batch : step.micro_batches) {
        for (const Document& document : micro_batch.documents) {
          if (document.length == 4) return step.step;
        }
      }
    }
    return std::int64_t{-1};
  };
  EXPECT_EQ(step_of_the_long_one(1), 1);
  EXPECT_EQ(step_of_the_long_one(2), 2);
  EXPECT_GT(step_of_the_long_one(0), 2) << "with no bound it waits for the end of the data";
}

std::vector<Tokens> with_ones(std::vector<Tokens> lengths, int ones) {
  lengths.insert(lengths.end(), static_cast<std::size_t>(ones), 1);
  return lengths;
}

TEST(WlbPacker, TakesFromItsQueuesWhatAStepNeedsToKeepItsTokenSwing) {
  PackingSpec spec = spec_of("wlb", 10, 2);
  spec.queues = {8};
  const std::vector<Tokens> lengths = with_ones({8}, 12);
  EXPECT_EQ(pack_all(spec, *kSquares, lengths)[0].num_tokens(), 12);
  spec.token_swing = 0.2;  // 16 to 24 tokens
  EXPECT_EQ(pack_all(spec, *kSquares, lengths)[0].num_tokens(), 20);
}

TEST(WlbPacker, ReleasesTheOldestWhereMoreWaitsThanMay) {
  PackingSpec spec = spec_of("wlb", 10, 2);
  spec.queues = {8};
  spec.max_held = 7;
  EXPECT_EQ(pack_all(spec, *kSquares, with_ones({8}, 12))[0].num_tokens(), 20);
}

TEST(WlbPacker, ClosesAMicroBatchThatHasItsDocuments) {
  PackingSpec spec = spec_of("wlb", 10, 2);
  spec.max_documents = 3;
  const auto steps = pack_all(spec, *kSquares, with_ones({}, 20));
  EXPECT_EQ(lengths_of(steps[0]), (Lengths{{1, 1, 1}, {1, 1, 1}}));
}

TEST(PoolPacker, HoldsALongDocumentUntilItsLikeComes) {
  std::vector<Tokens> lengths = with_ones({16}, 16);
  lengths.push_back(16);
  PackingSpec spec = spec_of("pool", 16, 2);
  spec.max_tokens = 24;
  const auto steps = pack_all(spec, *kSquares, with_ones(lengths, 16));
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].num_tokens(), 16) << "the long one waits";
  EXPECT_EQ(lengths_of(steps[1])[0][0], 16);
  EXPECT_EQ(lengths_of(steps[1])[1][0], 16);
}

TEST(PoolPacker, LevelsALongDocumentWithTwoOfHalfItsWork) {
  const std::unique_ptr<CostModel> by_length = make_synthetic_cost(1, 0);
  const auto steps = pack_all(spec_of("pool", 16, 2), *by_length, {16, 8, 8});
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(lengths_of(steps[0]), (Lengths{{16}, {8, 8}}));
}

TEST(PoolPacker, ReleasesADocumentAfterTheLongestDelay) {
  PackingSpec spec = spec_of("pool", 16, 2);
  spec.max_delay = 2;
  const auto steps = pack_all(spec, *kSquares, with_ones({16}, 16 + 3 * 32));
  std::size_t step_of_long = steps.size();
  for (std::size_t s = 0; s < steps.size(); ++s) {
    for (const auto& micro_batch : lengths_of(steps[s])) {
      if (std::find(micro_batch.begin(), micro_batch.end(), 16) != micro_batch.end()) step_of_long = s;
    }
  }
  EXPECT_EQ(step_of_long, 2u);
}

TEST(TokenCap, EightSevensUnderACapOfEightMakeEightMicroBatches) {
  for (const std::string packer : {"fixed-greedy", "wlb"}) {
    const auto steps = pack_all(spec_of(packer, 8, 8), *kSquares, std::vector<Tokens>(8, 7));
    ASSERT_EQ(steps.size(), 1u) << packer;
    EXPECT_EQ(lengths_of(steps[0]), Lengths(8, {7})) << packer;
  }
}

TEST(TokenCap, HoldsWhereOneLongDocumentLeavesLittleRoom) {
  for (const std::string packer : {"fixed-greedy", "wlb"}) {
    for (const PackedStep& step : pack_all(spec_of(packer, 100, 2), *kSquares, {90, 10, 10, 10, 10, 10, 10, 10})) {
      EXPECT_EQ(step.violations(100), Violations{}) << packer;
    }
  }
}

TEST(Oversize, RefusesByNameWhatIsLongerThanTheWindow) {
  PackingSpec spec = spec_of("wlb", 8192, 2);
  spec.oversize = Oversize::refuse;
  try {
    pack_all(spec, *kSquares, {100, 9000, 100});
    FAIL() << "a document of 9000 tokens was packed";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "document 1 has 9000 tokens, more than window = 8192, and oversize is refuse: choose truncate or "
                 "split, or a window it fits");
  }
}

TEST(Oversize, TruncatesOrSplitsAndCounts) {
  PackingSpec spec = spec_of("wlb", 8, 2);
  spec.oversize = Oversize::truncate;
  PackedStream truncating(spec, *kSquares, testing::source_of({9, 1}));
  EXPECT_EQ(lengths_of(*truncating.next()), (Lengths{{8}, {1}}));
  EXPECT_EQ(truncating.counts(),
            (PackingCounts{.documents_in = 2, .documents_out = 2, .truncated = 1, .truncated_tokens = 1}));

  spec.oversize = Oversize::split;
  PackedStream splitting(spec, *kSquares, testing::source_of({20, 1}));
  EXPECT_EQ(lengths_of(*splitting.next()), (Lengths{{8}, {8}}));
  EXPECT_EQ(lengths_of(*splitting.next()), (Lengths{{4}, {1}}));
  EXPECT_EQ(splitting.counts(), (PackingCounts{.documents_in = 2, .documents_out = 2, .split = 1}));
}

TEST(Oversize, IsMeasuredAgainstTheWindowAndNotTheCap) {
  PackingSpec spec = spec_of("wlb", 8, 2);
  spec.max_tokens = 16;
  EXPECT_EQ(lengths_of(pack_all(spec, *kSquares, {9})[0]), (Lengths{{8}, {}}));
}

TEST(Packers, MakeNoStepOfNothing) {
  for (const std::string packer : {"wlb", "pool"}) {
    PackingSpec spec = spec_of(packer, 8, 4);
    spec.max_tokens = 12;
    if (packer == "wlb") spec.queues = {4};
    std::int64_t number = 0;
    for (const PackedStep& step : pack_all(spec, *kSquares, std::vector<Tokens>(50, 7))) {
      EXPECT_GT(step.num_tokens(), 0) << packer << " step " << step.step;
      EXPECT_EQ(step.step, number++);
    }
  }
}

TEST(Pool, KeepsTheMixOfDomainsTheBetterTheMoreItIsWorth) {
  // Long documents are of one domain, so balance alone draws them together.
  Random random(1);
  std::vector<Document> documents;
  for (int i = 0; i < 4000; ++i) {
    const bool is_long = random.below(20) == 0;
    const auto length = static_cast<Tokens>(is_long ? 200 + random.below(800) : 1 + random.below(60));
    documents.push_back({.id = i, .length = length, .domain = is_long ? 1 : 0});
  }
  const auto apart = [&](double mix_weight) {
    PackingSpec spec = spec_of("pool", 1000, 4);
    spec.max_tokens = 1500;
    spec.mix_weight = mix_weight;
    std::size_t at = 0;
    PackedStream stream(spec, *kSquares, [&]() -> std::optional<Document> {
      if (at == documents.size()) return std::nullopt;
      return documents[at++];
    });
    DomainMix mix;
    while (const auto step = stream.next()) mix.add(*step);
    return mix.mean_apart();
  };
  const double without = apart(0);
  EXPECT_LT(apart(0.5), 0.8 * without);
  EXPECT_LT(apart(5), 0.6 * without);
}

TEST(Work, OfLongDocumentsDoesNotOverflow) {
  EXPECT_DOUBLE_EQ(kSquares->document(46341), 46341.0 * 46341.0);
  EXPECT_DOUBLE_EQ(kSquares->document(4'000'000), 1.6e13);
  MicroBatch micro_batch;
  micro_batch.documents.assign(3, Document{.length = 46341});
  EXPECT_DOUBLE_EQ(kSquares->micro_batch(micro_batch), 3 * 46341.0 * 46341.0);
}

TEST(MakePacker, NamesTheNearestPacker) {
  try {
    make_packer(spec_of("plian", 8, 1), *kSquares);
    FAIL() << "an unknown packer was made";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "packing: packer = \"plian\": must be one of plain, next-fit, fixed-greedy, fixed-solver, wlb, pool; "
                 "did you mean \"plain\"?");
  }
}

}  // namespace
}  // namespace ballast
