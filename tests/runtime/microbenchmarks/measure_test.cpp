// What a measured profile holds, on a model so small that it takes a second. Times themselves are not judged.
#include "ballast/runtime/microbenchmarks/measure.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ballast/runtime/profiler/profile_key.h"

namespace ballast {
namespace {

MeasureOptions small(Precision precision) {
  MeasureOptions options;
  options.model = {.num_layers = 3,
                   .hidden_dim = 8,
                   .num_heads = 2,
                   .num_kv_heads = 1,
                   .head_dim = 4,
                   .ffn_dim = 8,
                   .vocab_size = 16};
  options.precision = precision;
  options.longest_document = 300;
  options.most_tokens = 512;
  options.collective_ranks = {2, 3};
  options.most_collective_bytes = 1 << 15;
  return options;
}

TEST(MeasureProfile, HoldsEveryPartUnderThisMachinesKey) {
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::float64}) {
    const MeasureOptions options = small(precision);
    double last_share = 0;
    const HardwareProfile profile = measure_profile(options, [&](const std::string& what, double share) {
      EXPECT_GE(share, last_share) << what;
      EXPECT_LE(share, 1.0) << what;
      last_share = share;
    });
    EXPECT_EQ(profile.violations(), Violations{});
    EXPECT_EQ(profile.key, key_of_this_machine(options.model, precision, 1));
    EXPECT_GT(profile.optimizer_seconds_per_parameter, 0);
    EXPECT_GT(last_share, 0.8);
    for (const char* part : {"layer", "embedding", "head"}) {
      EXPECT_GE(std::ranges::count(profile.linear, part, &LinearPoint::part), 3) << part;
    }
    for (const char* operation : {"all_reduce", "all_gather", "reduce_scatter", "send"}) {
      EXPECT_GE(std::ranges::count(profile.collectives, operation, &CollectivePoint::operation), 2) << operation;
    }
  }
}

TEST(MeasureAttention, TakesCausalAndFullBlocksUpToTheLongestDocument) {
  const auto points = measure_attention(small(Precision::float32));
  EXPECT_TRUE(std::ranges::any_of(points, [](const AttentionPoint& p) { return p.causal && p.queries == 256; }));
  EXPECT_TRUE(std::ranges::any_of(points, [](const AttentionPoint& p) { return !p.causal && p.keys == 256; }));
  for (const AttentionPoint& p : points) {
    EXPECT_GT(p.forward, 0);
    EXPECT_GT(p.backward, 0);
    EXPECT_LE(p.causal ? p.queries : p.queries + p.keys, 300);
    if (p.causal) {
      EXPECT_EQ(p.queries, p.keys);
    }
  }
}

// A machine too slow for the large shapes still gets a profile: the smallest point of each kind is always measured.
TEST(MeasureAttention, LeavesOutWhatWouldTakeTooLongButNeverAll) {
  MeasureOptions options = small(Precision::float32);
  options.slowest_point = 0;
  const auto points = measure_attention(options);
  EXPECT_EQ(points.size(), 2U);
  EXPECT_NE(points.front().causal, points.back().causal);
}

}  // namespace
}  // namespace ballast
