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
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
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
    std::vector<std::int64_t> shape = local.sizes().vec();
    shape[0] = 0;
    for (const std::int64_t count : rows) shape[0] += count;
    return at::randn(shape, local.options().requires_grad(false));
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
};

Seconds measure_rank(const ShardPlan& plan, int rank, const ModelSpec& model) {
  const auto tokens = plan.num_tokens(rank);
  if (tokens == 0) return 0;
  LoneRank cp(rank, plan.num_ranks());
  RankHooks hooks;
  SpanRecorder recorder(0, std::chrono::steady_clock::now(), hooks);
  const ContextAttention attention(plan, cp, recorder, 0, 0);
  const auto draw = [&](int heads) { return at::randn({tokens, heads, model.head_dim}, at::kFloat).requires_grad_(); };
  const at::Tensor q = draw(model.num_heads), k = draw(model.num_kv_heads), v = draw(model.num_kv_heads);
  const at::Tensor dout = at::randn_like(q);
  at::Tensor out;
  const RepeatRule rule{.least = 3, .most = 9, .enough = 0.03};
  const TwoTimes times =
      time_both([&] { out = attention(0, q, k, v); }, [&] { torch::autograd::backward({out}, {dout}); }, rule);
  recorder.take();
  return times.first + times.second;
}

// The ranks that are predicted slowest stand for all: measuring each would take cp times as long.
Seconds measure_slowest(const ShardPlan& plan, const ModelSpec& model, const CostModel& cost) {
  const std::vector<Seconds> predicted = predict_attention(plan, cost);
  std::vector<int> order(predicted.size());
  for (std::size_t r = 0; r < order.size(); ++r) order[r] = static_cast<int>(r);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return predicted[static_cast<std::size_t>(a)] > predicted[static_cast<std::size_t>(b)];
  });
  Seconds slowest = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(2, order.size()); ++i) {
    slowest = std::max(slowest, measure_rank(plan, order[i], model));
  }
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
  int faster = 0, within = 0;
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
    const ShardPlan chosen = shard_adaptive(cu_seqlens, cp, *cost);
    const ShardPlan plans[] = {shard_per_sequence(cu_seqlens, cp), shard_per_document(cu_seqlens, cp)};
    const Seconds measured[] = {measure_slowest(plans[0], model, *cost), measure_slowest(plans[1], model, *cost)};
    const bool second = chosen.sharding == "per_document";
    const Seconds best = std::min(measured[0], measured[1]);
    ++choices[chosen.sharding];
    faster += measured[second] == best ? 1 : 0;
    within += measured[second] <= best * 1.02 ? 1 : 0;
    chosen_seconds += measured[second];
    per_sequence_seconds += measured[0];
    per_document_seconds += measured[1];
    best_seconds += best;
    for (int p = 0; p < 2; ++p) error += std::abs(predicted_slowest(plans[p], *cost) / measured[p] - 1) / (2 * count);
  }
  fmt::print("{}\n", nlohmann::json{{"micro_batches", count},
                                    {"chosen", choices},
                                    {"chosen_is_faster_share", static_cast<double>(faster) / count},
                                    {"chosen_is_faster_or_within_2_percent_share", static_cast<double>(within) / count},
                                    {"measured_seconds",
                                     {{"adaptive", chosen_seconds},
                                      {"per_sequence", per_sequence_seconds},
                                      {"per_document", per_document_seconds},
                                      {"better_of_the_two", best_seconds}}},
                                    {"prediction_error_mean_of_slowest_rank", error}}
                         .dump(2));
}
