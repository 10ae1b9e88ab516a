// Does adaptive sharding choose what is faster here? Real document lengths in micro-batches of 2K to 8K tokens, cp 2 to
// 8: the slowest rank's attention under both layouts, as the profile predicts it and as this machine's own kernel takes
// it. Ranks run one after the other on this core; the exchange of keys and values is the same for both and left out.
//
// bench_adaptive_choice LENGTHS.json PROFILE.json RUN.toml [MICRO_BATCHES] prints one JSON object.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "ballast/base/random.h"
#include "ballast/io/lengths.h"
#include "ballast/io/profile_json.h"
#include "ballast/io/run_toml.h"
#include "ballast/runtime/attention/engine.h"
#include "ballast/runtime/microbenchmarks/timing.h"
#include "ballast/runtime/train/allocator.h"
#include "ballast/sharding/sharder.h"

using namespace ballast;

namespace {

// One rank of a cp group whose peers' rows are there at once: what it computes, without what it would wait for.
class LoneRank final : public Communicator {
 public:
  LoneRank(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const std::string& name() const override { return name_; }
  void all_reduce(at::Tensor, ReduceOp) override {}
  void broadcast(at::Tensor, int) override {}
  at::Tensor all_gather_rows(const at::Tensor& local, const std::vector<std::int64_t>& rows) override {
    if (!gathered_.defined()) {
      std::vector<std::int64_t> shape = local.sizes().vec();
      shape[0] = 0;
      for (const std::int64_t count : rows) shape[0] += count;
      gathered_ = at::randn(shape, local.options().requires_grad(false));
    }
    return gathered_;
  }
  at::Tensor reduce_scatter_rows(const at::Tensor& full, const std::vector<std::int64_t>& rows) override {
    std::int64_t before = 0;
    for (int rank = 0; rank < rank_; ++rank) before += rows[static_cast<std::size_t>(rank)];
    return full.detach().narrow(0, before, rows[static_cast<std::size_t>(rank_)]);
  }
  std::unique_ptr<Transfer> send(const at::Tensor&, int, std::uint32_t) override { std::abort(); }
  std::unique_ptr<Transfer> receive(at::Tensor, int, std::uint32_t) override { std::abort(); }
  void barrier() override {}

 private:
  int rank_, size_;
  std::string name_ = "cp";
  at::Tensor gathered_;
};

// One layer's attention on one rank, to be timed again and again.
class Probe {
 public:
  Probe(const ShardPlan& plan, int rank, const ModelSpec& model)
      : cp_(rank, plan.num_ranks()),
        recorder_(0, std::chrono::steady_clock::now(), hooks_),
        attention_(plan, {cp_, recorder_, hooks_, 0, 0}) {
    const auto draw = [&](int heads) {
      return at::randn({plan.num_tokens(rank), heads, model.head_dim}, at::kFloat).requires_grad_();
    };
    q_ = draw(model.num_heads);
    k_ = draw(model.num_kv_heads);
    v_ = draw(model.num_kv_heads);
    dout_ = at::randn_like(q_);
  }

  // Forward and backward.
  Seconds run() {
    for (const at::Tensor* leaf : {&q_, &k_, &v_}) leaf->mutable_grad() = at::Tensor();
    const auto begin = std::chrono::steady_clock::now();
    torch::autograd::backward({attention_(0, q_, k_, v_)}, {dout_});
    const auto end = std::chrono::steady_clock::now();
    recorder_.take();
    return std::chrono::duration<double>(end - begin).count();
  }

 private:
  LoneRank cp_;
  RankHooks hooks_;
  SpanRecorder recorder_;
  ContextAttention attention_;
  at::Tensor q_, k_, v_, dout_;
};

// The ranks that are predicted slowest stand for all: measuring each would take cp times as long.
std::vector<int> slowest_ranks(const ShardPlan& plan, const CostModel& cost) {
  const std::vector<Seconds> predicted = predict_attention(plan, cost);
  std::vector<int> order(predicted.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return predicted[static_cast<std::size_t>(a)] > predicted[static_cast<std::size_t>(b)];
  });
  order.resize(std::min<std::size_t>(2, order.size()));
  return order;
}

// Of the slowest rank, by plan. Plans and ranks take turns, so that a machine that drifts favours none.
std::array<Seconds, 2> measure(const std::array<ShardPlan, 2>& plans, const ModelSpec& model, const CostModel& cost) {
  constexpr std::size_t kRounds = 5;
  struct Timed {
    std::size_t plan;
    std::unique_ptr<Probe> probe;
    std::vector<Seconds> seconds;
  };
  std::vector<Timed> all;
  for (std::size_t p = 0; p < 2; ++p) {
    for (const int rank : slowest_ranks(plans[p], cost)) {
      if (plans[p].num_tokens(rank) > 0) all.push_back({p, std::make_unique<Probe>(plans[p], rank, model), {}});
    }
  }
  for (std::size_t round = 0; round <= kRounds; ++round) {
    for (Timed& timed : all) {
      const Seconds seconds = timed.probe->run();
      if (round > 0) timed.seconds.push_back(seconds);  // after one that warms up
    }
  }
  std::array<Seconds, 2> slowest{};
  for (Timed& timed : all) slowest[timed.plan] = std::max(slowest[timed.plan], median(timed.seconds));
  return slowest;
}

Seconds predicted_slowest(const ShardPlan& plan, const CostModel& cost) {
  const std::vector<Seconds> seconds = predict_attention(plan, cost);
  return *std::max_element(seconds.begin(), seconds.end());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 64;
  configure_allocator();
  at::set_num_threads(1);
  const int count = argc > 4 ? std::atoi(argv[4]) : 200;
  const DocumentLengths lengths = read_lengths(argv[1]);
  ModelSpec model = read_run_toml(argv[3]).model;
  if (model.vocab_size == 0) model.vocab_size = 256;
  const std::unique_ptr<CostModel> cost = make_profile_cost(read_hardware_profile(argv[2]), model);

  Random random(1);
  int differing = 0, faster = 0, within = 0;
  double chosen_seconds = 0, per_sequence_seconds = 0, per_document_seconds = 0, best_seconds = 0, error = 0;
  std::map<std::string, int> choices;
  for (int i = 0; i < count; ++i) {
    const Tokens window = Tokens{2048} << random.below(3);
    const int cp = 2 << random.below(3);
    std::vector<Tokens> cu_seqlens = {0};
    while (cu_seqlens.back() < window) {
      const Tokens length = lengths.lengths[random.below(lengths.lengths.size())];
      cu_seqlens.push_back(std::min(window, cu_seqlens.back() + std::max<Tokens>(1, length)));
    }
    const std::array<ShardPlan, 2> plans = {shard_per_sequence(cu_seqlens, cp), shard_per_document(cu_seqlens, cp)};
    if (plans[0].ranges == plans[1].ranges) continue;  // one document: there is nothing to choose
    ++differing;
    const ShardPlan chosen = shard_adaptive(cu_seqlens, cp, *cost);
    const std::array<Seconds, 2> measured = measure(plans, model, *cost);
    const bool second = chosen.sharding == "per_document";
    const Seconds best = std::min(measured[0], measured[1]);
    ++choices[chosen.sharding];
    faster += measured[second] == best ? 1 : 0;
    within += measured[second] <= best * 1.02 ? 1 : 0;
    chosen_seconds += measured[second];
    per_sequence_seconds += measured[0];
    per_document_seconds += measured[1];
    best_seconds += best;
    fmt::print(stderr, "{} tokens, {} documents, cp {}: ", window, cu_seqlens.size() - 1, cp);
    for (std::size_t p = 0; p < 2; ++p) {
      const Seconds predicted = predicted_slowest(plans[p], *cost);
      fmt::print(stderr, "{} {:.2f} ms predicted, {:.2f} measured{}", plans[p].sharding, 1e3 * predicted,
                 1e3 * measured[p], p == 0 ? "; " : "\n");
      error += std::abs(predicted / measured[p] - 1) / 2;
    }
  }
  const auto share = [](double part, int whole) { return whole > 0 ? part / whole : 0.0; };
  fmt::print("{}\n", nlohmann::ordered_json{{"micro_batches", count},
                                            {"with_two_layouts", differing},
                                            {"chosen", choices},
                                            {"chosen_is_faster_share", share(faster, differing)},
                                            {"chosen_is_faster_or_within_2_percent_share", share(within, differing)},
                                            {"chosen_is_faster_or_within_2_percent_share_of_all",
                                             share(within + count - differing, count)},
                                            {"measured_seconds",
                                             {{"adaptive", chosen_seconds},
                                              {"per_sequence", per_sequence_seconds},
                                              {"per_document", per_document_seconds},
                                              {"better_of_the_two", best_seconds}}},
                                            {"prediction_error_mean_of_slowest_rank", share(error, differing)}}
                         .dump(2));
}
