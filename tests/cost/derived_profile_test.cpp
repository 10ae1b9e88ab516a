// A model's profile from a device's rates, by figures that a reader can check by hand.
#include "ballast/cost/derived_profile.h"

#include <gtest/gtest.h>

#include "ballast/cost/cluster_cost.h"

namespace ballast {
namespace {

// Every product at 1 TFLOPS, every attention at 0.5 and 0.25, memory so fast that it does not count.
DeviceProfile even_device() {
  DeviceProfile device{.device = "even", .precision = "bfloat16", .sources = {}};
  device.peak_flops_per_second = 2e12;
  device.memory_bytes_per_second = 1e30;
  for (const std::int64_t m : {64, 4096}) {
    for (const std::int64_t n : {64, 4096}) {
      for (const std::int64_t k : {64, 4096}) device.gemm.push_back({m, n, k, 1e12});
    }
  }
  device.attention = {{1024, 1024, true, 5e11, 2.5e11}, {1024, 1024, false, 5e11, 2.5e11}};
  return device;
}

ModelSpec model() {
  ModelSpec model;
  model.num_layers = 2;
  model.hidden_dim = 256;
  model.num_heads = 4;
  model.num_kv_heads = 2;
  model.head_dim = 64;
  model.ffn_dim = 512;
  model.vocab_size = 1024;
  return model;
}

TEST(DerivedProfile, PricesALayerByItsProductsAndBackwardTwiceAsMany) {
  const auto cost = make_profile_cost(derive_profile(even_device(), model(), 1), model());
  const double flops = 2.0 * 1024 * 256 * (256 + 2 * 128 + 256 + 3 * 512);
  EXPECT_NEAR(cost->layer(Pass::forward, 1024), flops / 1e12, 1e-9);
  EXPECT_NEAR(cost->layer(Pass::backward, 1024), 2 * flops / 1e12, 1e-9);
  EXPECT_NEAR(cost->head(Pass::forward, 1024), 2.0 * 1024 * 256 * 1024 / 1e12, 1e-9);
}

TEST(DerivedProfile, PricesAttentionByThePairsThatAreAttended) {
  const auto cost = make_profile_cost(derive_profile(even_device(), model(), 1), model());
  const AttentionBlock document{.queries = {0, 1024}, .keys = {0, 1024}};
  const double flops = 4.0 * (1024.0 * 1025 / 2) * 4 * 64;
  EXPECT_NEAR(cost->attention(Pass::forward, document), flops / 5e11, 1e-9);
  EXPECT_NEAR(cost->attention(Pass::backward, document), 2.5 * flops / 2.5e11, 1e-9);
}

TEST(DerivedProfile, ATensorParallelGroupSharesHeadsAndWidths) {
  const auto whole = make_profile_cost(derive_profile(even_device(), model(), 1), model());
  const auto half = make_profile_cost(derive_profile(even_device(), model(), 2), model());
  const AttentionBlock document{.queries = {0, 1024}, .keys = {0, 1024}};
  EXPECT_NEAR(half->layer(Pass::forward, 1024), whole->layer(Pass::forward, 1024) / 2, 1e-12);
  EXPECT_NEAR(half->attention(Pass::forward, document), whole->attention(Pass::forward, document) / 2, 1e-12);
  EXPECT_THROW(derive_profile(even_device(), model(), 3), UserError);
}

TEST(DerivedProfile, IsRefusedWhereTheGridOfProductsHasAHole) {
  DeviceProfile device = even_device();
  device.gemm.pop_back();
  EXPECT_THROW(derive_profile(device, model(), 1), UserError);
}

TEST(ClusterCost, TakesMeasuredTimesInsideANodeAndTheTiersOutside) {
  DeviceProfile device = even_device();
  device.collectives = {{"all_gather", 2, 1 << 20, 5e-6}, {"all_gather", 2, 2 << 20, 6e-6}};
  const ClusterSpec cluster{.name = "two nodes",
                            .device = "even",
                            .tiers = {{"node", 4, 100e9, 1e-6}, {"network", 0, 10e9, 10e-6}},
                            .memory_bytes = 1};
  // tp 2, cp 2: one node holds a cp group; dp 2 is over both nodes.
  const auto cost = make_cluster_cost(device, cluster, model(), {.dims = {.dp = 2, .pp = 1, .cp = 2}, .tp = 2});
  EXPECT_NEAR(cost->collective(Collective::all_gather, Axis::cp, 2, 1 << 20), 5e-6, 1e-12);
  EXPECT_NEAR(cost->collective(Collective::reduce_scatter, Axis::cp, 2, 2'000'000), 1e-6 + 1e6 / 100e9, 1e-12)
      << "not measured: what the tier allows";
  EXPECT_GT(cost->collective(Collective::all_reduce, Axis::dp_cp, 4, 1 << 20), 2 * 10e-6);
  EXPECT_EQ(cost->kv_bytes_per_token(), 2 * 2 * 64 * 2 / 2);
  EXPECT_GT(cost->tensor_exchange(Pass::backward, 1024), cost->tensor_exchange(Pass::forward, 1024));
  const auto alone = make_cluster_cost(device, cluster, model(), {.dims = {.dp = 2, .pp = 1, .cp = 2}});
  EXPECT_EQ(alone->tensor_exchange(Pass::forward, 1024), 0);
}

}  // namespace
}  // namespace ballast
