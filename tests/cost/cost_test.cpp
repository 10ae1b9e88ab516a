// Cost models: exact where measured, sensible between and beyond, and clear about what a profile lacks.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <string>

#include "ballast/base/error.h"
#include "ballast/cost/cost_model.h"

namespace ballast {
namespace {

AttentionBlock block(Tokens queries, Tokens keys) { return {.queries = {keys - queries, keys}, .keys = {0, keys}}; }

// A device that computes 1e9 pairs a second at any size (twice the time backward) but in blocks of no less than 1 us.
HardwareProfile even_profile() {
  HardwareProfile profile;
  profile.key = {"test device", "none", "float32", "any"};
  for (const Tokens queries : {16, 256, 4096}) {
    for (const Tokens keys : {16, 256, 4096}) {
      const double seconds = 1e-9 * static_cast<double>(queries * keys);
      profile.attention.push_back({queries, keys, false, seconds, 2 * seconds});
    }
    const double seconds = 0.5e-9 * static_cast<double>(queries * (queries + 1));
    profile.attention.push_back({queries, queries, true, seconds, 2 * seconds});
  }
  for (const std::string part : {"layer", "embedding", "head"}) {
    profile.linear.push_back({part, 1000, 2e-3, 4e-3});  // 1 ms, and 1 us a token
    profile.linear.push_back({part, 3000, 4e-3, 8e-3});
  }
  for (const std::string operation : {"all_reduce", "all_gather", "reduce_scatter", "send"}) {
    profile.collectives.push_back({operation, 2, 1000, 1e-4});
    profile.collectives.push_back({operation, 2, 1'000'000, 1e-3});
  }
  profile.optimizer_seconds_per_parameter = 1e-9;
  profile.attention_block_overhead = 1e-6;
  return profile;
}

ModelSpec two_layers() {
  ModelSpec model;
  model.num_layers = 2;
  return model;
}

TEST(SyntheticCost, PricesADocumentAtATokenAndBSquaredToken) {
  const auto cost = make_synthetic_cost(3, 2);
  EXPECT_DOUBLE_EQ(cost->document(10), 30 + 200);
  EXPECT_DOUBLE_EQ(cost->document(0), 0);
  MicroBatch micro_batch{.documents = {Document{.length = 10}, Document{.length = 1}}};
  EXPECT_DOUBLE_EQ(cost->micro_batch(micro_batch), 230 + 5);
}

RC_GTEST_PROP(SyntheticCost, BlocksOfADocumentAddUpToTheDocument, ()) {
  const auto cost = make_synthetic_cost(0, 2);
  const Tokens length = *rc::gen::inRange<Tokens>(1, 5000);
  const Tokens cut = *rc::gen::inRange<Tokens>(0, length);
  double sum = 0;
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    sum += cost->attention(pass, block(cut, cut)) + cost->attention(pass, block(length - cut, length));
  }
  RC_ASSERT(std::abs(sum - cost->document_attention(length)) <= 1e-9 * sum);
}

TEST(SyntheticCost, RefusesNegativeAndAllZeroCosts) {
  EXPECT_THROW(make_synthetic_cost(-1, 1), UserError);
  EXPECT_THROW(make_synthetic_cost(0, 0), UserError);
  EXPECT_THROW(make_synthetic_cost(1, NAN), UserError);
}

TEST(ProfileCost, RunsABlockAsAFullBlockOverEarlierKeysAndACausalDiagonal) {
  const auto cost = make_profile_cost(even_profile(), two_layers());
  // 256 x 4096 before it and 256 * 257 / 2 on the diagonal, at 1e9 pairs a second.
  EXPECT_NEAR(cost->attention(Pass::forward, block(256, 256 + 4096)), 1e-9 * (256.0 * 4096 + 256.0 * 257 / 2), 1e-12);
  EXPECT_NEAR(cost->attention(Pass::backward, block(4096, 4096)), 1e-9 * 4096.0 * 4097, 1e-12);
}

TEST(ProfileCost, InterpolatesTheRateInTheLogarithmOfTheSizes) {
  HardwareProfile profile = even_profile();
  for (AttentionPoint& point : profile.attention) {
    if (!point.causal && point.queries == 4096) point.forward /= 3;  // three times the rate of 256 queries
  }
  const auto cost = make_profile_cost(profile, two_layers());
  const double diagonal = 1e-9 * 1024.0 * 1025 / 2;
  EXPECT_NEAR(cost->attention(Pass::forward, block(1024, 1024 + 256)) - diagonal, 1024.0 * 256 / 2e9, 1e-12)
      << "1024 lies half way between 256 and 4096";
}

TEST(ProfileCost, PricesDocumentsOfMillionsOfTokensAtTheRateOfTheLargestPoint) {
  const auto cost = make_profile_cost(even_profile(), two_layers());
  const double length = 4'194'304;
  EXPECT_NEAR(cost->attention(Pass::forward, block(4'194'304, 4'194'304)) / (0.5e-9 * length * (length + 1)), 1, 1e-12);
  EXPECT_NEAR(cost->document_attention(4'194'304) / (2 * 3 * 0.5e-9 * length * (length + 1)), 1, 1e-12);
  EXPECT_TRUE(std::isfinite(cost->document(16'777'216)));
}

TEST(ProfileCost, NoBlockIsCheaperThanItsLaunch) {
  const auto cost = make_profile_cost(even_profile(), two_layers());
  EXPECT_DOUBLE_EQ(cost->attention(Pass::forward, block(1, 1)), 1e-6);
  EXPECT_DOUBLE_EQ(cost->attention(Pass::forward, block(1, 2)), 2e-6) << "two kernels: earlier keys and diagonal";
  EXPECT_DOUBLE_EQ(cost->attention(Pass::forward, block(0, 0)), 0);
}

TEST(ProfileCost, LinearPartsArePiecewiseLinearInTokens) {
  const auto cost = make_profile_cost(even_profile(), two_layers());
  EXPECT_NEAR(cost->layer(Pass::forward, 1000), 2e-3, 1e-12);
  EXPECT_NEAR(cost->layer(Pass::forward, 2000), 3e-3, 1e-12);
  EXPECT_NEAR(cost->layer(Pass::backward, 2000), 6e-3, 1e-12);
  EXPECT_NEAR(cost->head(Pass::forward, 6000), 8e-3, 1e-12) << "beyond the last point, its time a token";
  EXPECT_NEAR(cost->embedding(Pass::forward, 500), 1.5e-3, 1e-12) << "below the first, along the first line";
  EXPECT_EQ(cost->layer(Pass::forward, 0), 0);
}

TEST(ProfileCost, ADocumentAddsWhatATokenCostsAtTheLargestMeasuredSize) {
  const auto cost = make_profile_cost(even_profile(), two_layers());
  EXPECT_NEAR(cost->document_linear(3000), 2 * 12e-3 + 12e-3 + 12e-3, 1e-12) << "two layers, embedding, head";
}

TEST(ProfileCost, ReorderingCostsNothingWhereItWasNotMeasuredAndIsNoPartOfADocument) {
  HardwareProfile profile = even_profile();
  const auto without = make_profile_cost(profile, two_layers());
  EXPECT_EQ(without->reorder(Pass::forward, 1000), 0);
  profile.linear.push_back({"reorder", 1000, 1e-3, 3e-3});
  const auto with = make_profile_cost(profile, two_layers());
  EXPECT_NEAR(with->reorder(Pass::forward, 2000), 2e-3, 1e-12);
  EXPECT_NEAR(with->reorder(Pass::backward, 2000), 6e-3, 1e-12);
  EXPECT_EQ(with->document_linear(3000), without->document_linear(3000));
}

TEST(ProfileCost, CollectivesFollowBytesAndRanks) {
  const auto cost = make_profile_cost(even_profile(), two_layers());
  EXPECT_EQ(cost->collective(Collective::all_gather, Axis::cp, 1, 1 << 30), 0) << "a group of one";
  EXPECT_NEAR(cost->collective(Collective::all_gather, Axis::cp, 2, 1000), 1e-4, 1e-12);
  EXPECT_NEAR(cost->collective(Collective::all_gather, Axis::cp, 2, 500'500), 5.5e-4, 1e-12);
  EXPECT_NEAR(cost->collective(Collective::all_gather, Axis::cp, 2, 10), 1e-4, 1e-12) << "latency";
  EXPECT_NEAR(cost->collective(Collective::all_gather, Axis::cp, 2, 4'000'000), 4e-3, 1e-12) << "bandwidth";
  EXPECT_NEAR(cost->collective(Collective::all_gather, Axis::cp, 4, 1'000'000), 1e-3 * (3.0 / 4) / (1.0 / 2), 1e-12);
  EXPECT_NEAR(cost->collective(Collective::all_reduce, Axis::cp, 8, 1'000'000), 1e-3 * (7.0 / 8) / (1.0 / 2), 1e-12);
}

TEST(ProfileCost, KnowsTheBytesOfATokensKeysValuesAndActivation) {
  const auto cost = make_profile_cost(even_profile(), two_layers());
  EXPECT_EQ(cost->kv_bytes_per_token(), 2 * 4 * 64 * 4);
  EXPECT_EQ(cost->activation_bytes_per_token(), 256 * 4);
}

std::string complaint(HardwareProfile profile) {
  try {
    make_profile_cost(std::move(profile), two_layers())->collective(Collective::reduce_scatter, Axis::cp, 2, 1);
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

TEST(ProfileCost, NamesThePartAProfileLacks) {
  HardwareProfile no_causal = even_profile();
  std::erase_if(no_causal.attention, [](const AttentionPoint& point) { return point.causal; });
  EXPECT_NE(complaint(no_causal).find("lacks causal attention"), std::string::npos) << complaint(no_causal);

  HardwareProfile no_full = even_profile();
  std::erase_if(no_full.attention, [](const AttentionPoint& point) { return !point.causal; });
  EXPECT_NE(complaint(no_full).find("lacks attention over earlier keys"), std::string::npos) << complaint(no_full);

  HardwareProfile no_head = even_profile();
  std::erase_if(no_head.linear, [](const LinearPoint& point) { return point.part == "head"; });
  EXPECT_NE(complaint(no_head).find("lacks linear part \"head\""), std::string::npos) << complaint(no_head);

  HardwareProfile no_scatter = even_profile();
  std::erase_if(no_scatter.collectives,
                [](const CollectivePoint& point) { return point.operation == "reduce_scatter"; });
  EXPECT_NE(complaint(no_scatter).find("lacks collective \"reduce_scatter\""), std::string::npos)
      << complaint(no_scatter);

  EXPECT_EQ(complaint(even_profile()), "none");
}

RC_GTEST_PROP(ProfileCost, MoreRowsNeverTakeLessTime, ()) {
  const auto cost = make_profile_cost(even_profile(), two_layers());
  const Tokens queries = *rc::gen::inRange<Tokens>(1, 100'000);
  const Tokens before = *rc::gen::inRange<Tokens>(0, 100'000);
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    const double smaller = cost->attention(pass, block(queries, queries + before));
    RC_ASSERT(std::isfinite(smaller) && smaller > 0);
    RC_ASSERT(cost->attention(pass, block(queries + 1, queries + 1 + before)) >= smaller);
    RC_ASSERT(cost->attention(pass, block(queries, queries + before + 1)) >= smaller);
  }
}

}  // namespace
}  // namespace ballast
