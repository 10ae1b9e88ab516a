// The engine against the reference on random plans: output and all gradients, at any degree.
#include "ballast/runtime/attention/engine.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "ballast/runtime/attention/merge.h"
#include "ballast/runtime/attention/reference.h"
#include "tests/runtime/one_thread.h"
#include "tests/runtime/random_plan.h"
#include "tests/runtime/thread_communicator.h"

namespace ballast {
namespace {

using testing::random_boundaries;
using testing::random_plan;
using testing::random_ring_plan;
using testing::run_ranks;

struct Inputs {
  at::Tensor q, k, v, dout;
};

struct Result {
  at::Tensor out, dq, dk, dv;
};

Inputs random_inputs(Tokens tokens, int heads, int kv_heads, int head_dim, at::ScalarType type, std::uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  const auto draw = [&](int num_heads) { return at::randn({tokens, num_heads, head_dim}, generator, type); };
  return {draw(heads), draw(kv_heads), draw(kv_heads), draw(heads)};
}

template <class Attention>
Result differentiate(const Inputs& in, const Attention& attention) {
  const at::Tensor q = in.q.detach().clone().requires_grad_();
  const at::Tensor k = in.k.detach().clone().requires_grad_();
  const at::Tensor v = in.v.detach().clone().requires_grad_();
  const at::Tensor out = attention(q, k, v);
  torch::autograd::backward({out}, {in.dout});
  return {out.detach(), q.grad(), k.grad(), v.grad()};
}

Result by_reference(const Inputs& in, const std::vector<Tokens>& cu_seqlens) {
  return differentiate(in, [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    return reference_attention(q, k, v, cu_seqlens);
  });
}

// On plan.num_ranks() threads; the ranks' results, put back into packed order.
Result by_engine(const Inputs& in, const ShardPlan& plan) {
  Result whole{at::full_like(in.q, NAN), at::full_like(in.q, NAN), at::full_like(in.k, NAN), at::full_like(in.v, NAN)};
  run_ranks(plan.num_ranks(), [&](Communicator& cp) {
    RankHooks hooks;
    SpanRecorder recorder(cp.rank(), std::chrono::steady_clock::now(), hooks);
    std::vector<Tokens> packed;
    for (const TokenRange& range : plan.linear_ranges(cp.rank())) {
      for (Tokens t = range.begin; t < range.end; ++t) packed.push_back(t);
    }
    const at::Tensor rows = at::tensor(at::ArrayRef<Tokens>(packed), at::kLong);
    const Inputs local{in.q.index_select(0, rows), in.k.index_select(0, rows), in.v.index_select(0, rows),
                       in.dout.index_select(0, rows)};
    const ContextAttention attention(plan, {cp, recorder, hooks, 0, 0});
    const Result result = differentiate(
        local, [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) { return attention(0, q, k, v); });
    whole.out.index_copy_(0, rows, result.out);  // ranks write to rows of their own
    whole.dq.index_copy_(0, rows, result.dq);
    whole.dk.index_copy_(0, rows, result.dk);
    whole.dv.index_copy_(0, rows, result.dv);
    const auto spans = recorder.take();
    if (plan.attends_in_rings()) return;
    ASSERT_EQ(spans.size(), 2U);
    EXPECT_EQ(spans[0].kind, SpanKind::GATHER_KV);
    EXPECT_EQ(spans[1].kind, SpanKind::REDUCE_KV);
    EXPECT_EQ(spans[1].axis, Axis::cp);
  });
  return whole;
}

double error(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() == 0) return 0;
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

double error(const Result& a, const Result& b) {
  return std::max({error(a.out, b.out), error(a.dq, b.dq), error(a.dk, b.dk), error(a.dv, b.dv)});
}

// Runs dealt round robin: what per-document sharding does with left-over tokens, for every token.
ShardPlan dealt_plan(const std::vector<Tokens>& cu_seqlens, int ranks, Tokens run) {
  ShardPlan plan{"dealt", cu_seqlens, std::vector<std::vector<TokenRange>>(static_cast<std::size_t>(ranks))};
  std::size_t rank = 0;
  for (Tokens at = 0; at < plan.num_tokens(); at += run) {
    plan.ranges[rank++ % plan.ranges.size()].push_back({at, std::min(at + run, plan.num_tokens())});
  }
  return plan;
}

RC_GTEST_PROP(ContextAttention, EqualsTheReferenceOnAnyPlanInFloat64, ()) {
  const auto cu_seqlens = random_boundaries(8, 80);
  const auto plan = random_plan(cu_seqlens, *rc::gen::inRange(1, 9));
  const int group = *rc::gen::element(1, 2);
  const auto in = random_inputs(plan.num_tokens(), 2 * group, 2, 8, at::kDouble, *rc::gen::arbitrary<std::uint32_t>());
  RC_ASSERT(error(by_engine(in, plan), by_reference(in, cu_seqlens)) <= 1e-10);
}

RC_GTEST_PROP(ContextAttention, EqualsTheReferenceOnAnyRingsAndMovesInFloat64, ()) {
  const auto cu_seqlens = random_boundaries(8, 80);
  const auto plan = random_ring_plan(cu_seqlens, *rc::gen::inRange(1, 9), 8);
  const int group = *rc::gen::element(1, 2);
  const auto in = random_inputs(plan.num_tokens(), 2 * group, 2, 8, at::kDouble, *rc::gen::arbitrary<std::uint32_t>());
  RC_ASSERT(error(by_engine(in, plan), by_reference(in, cu_seqlens)) <= 1e-10);
}

struct Case {
  std::vector<Tokens> cu_seqlens;
  int ranks;
  Tokens run;
};

// Documents shorter than the degree, of no token, ranks with nothing; then blocks of several kernel tiles.
const std::vector<Case> kCases = {
    {{0}, 2, 1},        {{0, 0, 0}, 3, 1},          {{0, 1}, 4, 1},          {{0, 7}, 2, 2},
    {{0, 3}, 4, 1},     {{0, 9, 10}, 1, 10},        {{0, 4, 8}, 2, 2},       {{0, 4, 4, 16}, 2, 3},
    {{0, 700}, 1, 700}, {{0, 1, 600, 1300}, 3, 97}, {{0, 33, 1300}, 2, 650}, {{0, 1030}, 5, 206},
};

TEST(ContextAttention, EqualsTheReferenceInFloat32) {
  for (const Case& c : kCases) {
    const auto plan = dealt_plan(c.cu_seqlens, c.ranks, c.run);
    const auto in = random_inputs(plan.num_tokens(), 4, 2, 16, at::kFloat, 5);
    // Gradients of keys sum over up to 1,300 queries of values around 1.
    EXPECT_LE(error(by_engine(in, plan), by_reference(in, c.cu_seqlens)), 1e-5) << c.cu_seqlens.back() << " tokens";
  }
}

// Every document dealt round robin to one ring.
ShardPlan ring_plan(const Case& c) {
  ShardPlan plan = dealt_plan(c.cu_seqlens, c.ranks, c.run);
  plan.exchange = KvExchange::rings;
  if (c.ranks < 2) return plan;
  plan.rings.push_back({});
  for (int rank = 0; rank < c.ranks; ++rank) plan.rings[0].ranks.push_back(rank);
  for (std::size_t d = 0; d + 1 < c.cu_seqlens.size(); ++d) plan.rings[0].documents.push_back(d);
  return plan;
}

TEST(ContextAttention, RingsEqualTheReferenceInFloat32AndInBfloat16) {
  for (const Case& c : kCases) {
    const auto plan = ring_plan(c);
    ASSERT_TRUE(plan.violations().empty()) << plan.violations().front();
    const auto in = random_inputs(plan.num_tokens(), 4, 2, 16, at::kFloat, 5);
    EXPECT_LE(error(by_engine(in, plan), by_reference(in, c.cu_seqlens)), 1e-5) << c.cu_seqlens.back() << " tokens";
    const auto half = random_inputs(plan.num_tokens(), 4, 2, 16, at::kBFloat16, 5);
    const Inputs wide{half.q.to(at::kFloat), half.k.to(at::kFloat), half.v.to(at::kFloat), half.dout.to(at::kFloat)};
    EXPECT_LE(error(by_engine(half, plan), by_reference(wide, c.cu_seqlens)), 0.1) << c.cu_seqlens.back() << " tokens";
  }
}

TEST(ContextAttention, EqualsTheReferenceInBfloat16ToItsPrecision) {
  for (const Case& c : kCases) {
    const auto plan = dealt_plan(c.cu_seqlens, c.ranks, c.run);
    const auto in = random_inputs(plan.num_tokens(), 4, 2, 16, at::kBFloat16, 5);
    const Inputs wide{in.q.to(at::kFloat), in.k.to(at::kFloat), in.v.to(at::kFloat), in.dout.to(at::kFloat)};
    // 8 bits of mantissa on values up to 8.
    EXPECT_LE(error(by_engine(in, plan), by_reference(wide, c.cu_seqlens)), 0.1) << c.cu_seqlens.back() << " tokens";
  }
}

TEST(MergeInto, IsTheMergeOfTheReferenceForAnyStridesAndFromNothing) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const auto part = [&](int seed) {
      at::Generator generator = at::detail::createCPUGenerator(seed);
      return AttentionOutput{at::randn({4, 7, 16}, generator, type).transpose(0, 1),
                             at::randn({4, 7}, generator, type)};
    };
    const AttentionOutput a = part(1);
    const AttentionOutput b = part(2);
    const AttentionOutput into{at::zeros({7, 4, 16}, type), at::full({4, 7}, -INFINITY, type)};
    merge_into(into, a);
    merge_into(into, b);
    const AttentionOutput merged = merge(a, b);
    const double tolerance = type == at::kDouble ? 1e-13 : 1e-6;
    EXPECT_LE(error(into.out_QHD, merged.out_QHD), tolerance);
    EXPECT_LE(error(into.lse_HQ, merged.lse_HQ), tolerance);
  }
}

// A leak across documents, or from later to earlier tokens, would change the wrong rows.
TEST(ContextAttention, ChangingOneTokenChangesExactlyTheLaterTokensOfItsDocument) {
  const std::vector<Tokens> cu_seqlens{0, 40, 41, 41, 300};
  for (const int ranks : {1, 3}) {
    const auto plan = dealt_plan(cu_seqlens, ranks, 17);
    for (const Tokens changed : {Tokens{0}, Tokens{25}, Tokens{40}, Tokens{41}, Tokens{180}, Tokens{299}}) {
      auto in = random_inputs(plan.num_tokens(), 4, 2, 16, at::kFloat, 5);
      const at::Tensor before = by_engine(in, plan).out;
      in.k[changed].add_(1);
      in.v[changed].add_(1);
      const at::Tensor after = by_engine(in, plan).out;
      const auto end = *std::upper_bound(cu_seqlens.begin(), cu_seqlens.end(), changed);
      for (Tokens t = 0; t < plan.num_tokens(); ++t) {
        EXPECT_EQ(at::equal(before[t], after[t]), t < changed || t >= end) << "token " << t << " of " << changed;
      }
    }
  }
}

}  // namespace
}  // namespace ballast
