// Attention as the engine runs it: a causal point is a micro-batch of equal documents through the engine, with all that
// it copies; a full point is a block's rectangle over earlier keys, its merge included.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "ballast/runtime/attention/engine.h"
#include "ballast/runtime/attention/local_kernel.h"
#include "ballast/runtime/comm/solo.h"
#include "ballast/runtime/microbenchmarks/measure.h"
#include "ballast/runtime/microbenchmarks/timing.h"
#include "ballast/runtime/model/parameters.h"

namespace ballast {

namespace {

struct Rows {
  at::Tensor q, k, v;
};

Rows random_rows(const MeasureOptions& options, Tokens queries, Tokens keys) {
  const ModelSpec& m = options.model;
  const auto draw = [&](Tokens rows, int heads) {
    return at::randn({rows, heads, m.head_dim}, at::kFloat).to(compute_type(options.precision));
  };
  return {draw(queries, m.num_heads), draw(keys, m.num_kv_heads), draw(keys, m.num_kv_heads)};
}

// Seconds of a whole micro-batch of `count` documents of `length` tokens.
TwoTimes time_documents(const MeasureOptions& options, Tokens length, Tokens count) {
  ShardPlan plan{"measured", {0}, {{{0, length * count}}}};
  for (Tokens d = 0; d < count; ++d) plan.cu_seqlens.push_back(plan.cu_seqlens.back() + length);
  const auto cp = make_solo_communicator("cp");
  RankHooks hooks;
  SpanRecorder recorder(0, std::chrono::steady_clock::now(), hooks);
  const ContextAttention attention(plan, {*cp, recorder, hooks, 0, 0});
  const Rows rows = random_rows(options, length * count, length * count);
  for (const at::Tensor* leaf : {&rows.q, &rows.k, &rows.v}) leaf->requires_grad_();
  const at::Tensor dout = at::randn_like(rows.q);
  at::Tensor out;
  const TwoTimes times = time_both(
      [&] {
        for (const at::Tensor* leaf : {&rows.q, &rows.k, &rows.v}) leaf->mutable_grad() = at::Tensor();
        out = attention(0, rows.q, rows.k, rows.v);
      },
      [&] { torch::autograd::backward({out}, {dout}); });
  recorder.take();
  return times;
}

AttentionPoint causal_point(const MeasureOptions& options, Tokens length) {
  constexpr Tokens kTokensTogether = 1024;  // short documents come in company
  const Tokens count = std::max<Tokens>(1, kTokensTogether / length);
  const TwoTimes times = time_documents(options, length, count);
  const auto documents = static_cast<double>(count);
  return {length, length, true, times.first / documents, times.second / documents};
}

AttentionPoint full_point(const MeasureOptions& options, Tokens queries, Tokens keys) {
  const Rows rows = random_rows(options, queries, keys);
  const Rows diagonal = random_rows(options, queries, queries);
  const AttentionOutput other = attend_part(rows.q, diagonal.k, diagonal.v, true);
  const at::Tensor dout = at::randn_like(rows.q);
  const auto wide = other.lse_HQ.options();
  const AttentionGradients gradients{at::zeros(rows.q.sizes(), wide), at::zeros(rows.k.sizes(), wide),
                                     at::zeros(rows.v.sizes(), wide)};
  AttentionOutput merged;
  const TwoTimes times =
      time_both([&] { merged = merge(attend_part(rows.q, rows.k, rows.v, false), other); },
                [&] { attend_part_backward(dout, rows.q, rows.k, rows.v, merged, false, gradients); });
  return {queries, keys, false, times.first, times.second};
}

}  // namespace

std::vector<AttentionPoint> measure_attention(const MeasureOptions& options, const MeasureProgress& progress) {
  struct Shape {
    Tokens queries, keys;
    bool causal;
  };
  std::vector<Shape> shapes;
  // Both sides of 192 and 768 queries, where the kernel takes larger tiles: between the sides its rate jumps.
  for (const Tokens length : {1,   4,    16,   32,   64,   128,  191,  192,  256,   384,   512,   767,
                              768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 32768, 65536}) {
    if (length == 1 || length <= options.longest_document) shapes.push_back({length, length, true});
  }
  for (const Tokens queries : {1, 16, 64, 191, 192, 767, 768, 2048, 4096}) {
    for (const Tokens keys : {64, 256, 1024, 4096, 8192, 16384, 65536}) {
      if (queries + keys <= std::max<Tokens>(65, options.longest_document)) shapes.push_back({queries, keys, false});
    }
  }
  std::vector<AttentionPoint> points;
  double seconds_per_pair = 0;  // of the last point, which is the next smaller one, or of another number of queries
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const auto [queries, keys, causal] = shapes[i];
    const double pairs = static_cast<double>(queries) * static_cast<double>(keys) / (causal ? 2 : 1);
    const bool first_of_kind = i == 0 || shapes[i - 1].causal != causal;
    if (!first_of_kind && pairs * seconds_per_pair > options.slowest_point) continue;
    if (progress) {
      progress("attention " + std::to_string(queries) + " x " + std::to_string(keys),
               static_cast<double>(i) / static_cast<double>(shapes.size()));
    }
    points.push_back(causal ? causal_point(options, queries) : full_point(options, queries, keys));
    seconds_per_pair = (points.back().forward + points.back().backward) / pairs;
  }
  return points;
}

Seconds measure_block_overhead(const MeasureOptions& options) {
  constexpr Tokens kMany = 257;
  const TwoTimes one = time_documents(options, 1, 1);
  const TwoTimes many = time_documents(options, 1, kMany);
  return std::max(0.0, (many.first + many.second - one.first - one.second) / (2.0 * (kMany - 1)));
}

}  // namespace ballast
