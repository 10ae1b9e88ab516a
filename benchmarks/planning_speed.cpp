// How long planning takes, on one core, on public document lengths: a step of 512 micro-batches, a stream of a million
// documents, and a micro-batch of 1,024 documents sharded over 16 ranks. Windows of 128K, cost 24576,1.
//
// bench_planning_speed LENGTHS.json prints one JSON object.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "ballast/base/random.h"
#include "ballast/cost/cluster_cost.h"
#include "ballast/io/cluster_toml.h"
#include "ballast/io/device_profile_json.h"
#include "ballast/io/lengths.h"
#include "ballast/packing/packed_stream.h"
#include "ballast/sharding/sharder.h"
#include "ballast/sharding/zeppelin.h"

using namespace ballast;

namespace {

using Clock = std::chrono::steady_clock;
constexpr Tokens kWindow = 131072;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

PackingSpec spec_of(const std::string& packer, int micro_batches) {
  PackingSpec spec;
  spec.packer = packer;
  spec.window = kWindow;
  spec.micro_batches = micro_batches;
  if (spec.variable_length()) spec.max_tokens = kWindow * 3 / 2;
  if (packer == "wlb") spec.queues = {kWindow / 4, kWindow / 2};
  if (packer == "pool") spec.max_delay = 20;
  return spec;
}

// Documents of the file's lengths at random, for ever: nothing of it grows.
class Documents {
 public:
  explicit Documents(const std::vector<Tokens>& lengths) : lengths_(lengths) {}
  std::optional<Document> next() {
    return Document{.id = count_++, .length = std::min(kWindow, lengths_[random_.below(lengths_.size())])};
  }
  std::int64_t count() const { return count_; }

 private:
  const std::vector<Tokens>& lengths_;
  Random random_{1};
  std::int64_t count_ = 0;
};

std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t pages = 0;
  statm >> pages >> pages;
  return pages * 4096;
}

// One step of 17,000 documents into 512 micro-batches, once the packer is full; drawing the documents is not counted.
nlohmann::json measure_step(const std::string& packer, const std::vector<Tokens>& lengths, const CostModel& cost) {
  const PackingSpec spec = spec_of(packer, 512);
  const std::unique_ptr<Packer> made = make_packer(spec, cost);
  Documents documents(lengths);
  std::vector<double> seconds;
  std::vector<double> sizes;
  for (int step = 0; step < 60; ++step) {
    std::vector<Document> batch;
    for (Tokens tokens = made->backlog_tokens(); tokens < kWindow * spec.micro_batches; tokens += batch.back().length) {
      batch.push_back(*documents.next());
      batch.back().due_step = step;
    }
    const auto count = static_cast<double>(batch.size());
    const auto begin = Clock::now();
    made->add(std::move(batch));
    if (step < 30) continue;
    seconds.push_back(seconds_since(begin));
    sizes.push_back(count);
  }
  return {{"documents", std::accumulate(sizes.begin(), sizes.end(), 0.0) / static_cast<double>(sizes.size())},
          {"milliseconds_median", 1e3 * median(seconds)},
          {"milliseconds_max", 1e3 * *std::max_element(seconds.begin(), seconds.end())}};
}

nlohmann::json measure_stream(const std::string& packer, const std::vector<Tokens>& lengths, const CostModel& cost) {
  constexpr std::int64_t kDocuments = 1'000'000;
  Documents documents(lengths);
  PackedStream stream(spec_of(packer, 4), cost, [&] { return documents.next(); });
  std::int64_t early_bytes = 0;
  Tokens most_held = 0;
  const auto begin = Clock::now();
  while (documents.count() < kDocuments) {
    stream.next();
    most_held = std::max(most_held, stream.held_tokens());
    if (early_bytes == 0 && documents.count() >= kDocuments / 10) early_bytes = resident_bytes();
  }
  return {{"documents_per_second", static_cast<double>(documents.count()) / seconds_since(begin)},
          {"held_tokens_max", most_held},
          {"resident_bytes_after_a_tenth", early_bytes},
          {"resident_bytes_at_the_end", resident_bytes()}};
}

nlohmann::json measure_sharding(const std::string& sharding, const std::vector<Tokens>& lengths,
                                const CostModel& cost) {
  Documents documents(lengths);
  std::vector<double> seconds;
  for (int i = 0; i < 50; ++i) {
    std::vector<Tokens> cu_seqlens = {0};
    for (int d = 0; d < 1024; ++d) cu_seqlens.push_back(cu_seqlens.back() + documents.next()->length);
    const auto begin = Clock::now();
    const ShardPlan plan = make_shard_plan(sharding, cu_seqlens, 16, cost);
    seconds.push_back(seconds_since(begin));
    if (plan.num_tokens() != cu_seqlens.back()) return nullptr;
  }
  return {{"milliseconds_median", 1e3 * median(seconds)}};
}

// Zeppelin's partitioner on cluster A, 65,536 tokens a rank.
nlohmann::json measure_placement(int ranks, const std::vector<Tokens>& lengths) {
  const ClusterSpec cluster = read_cluster("profiles/clusters/zeppelin_a.toml");
  const auto cost = make_cluster_cost(read_device_profile(cluster.device), cluster, *model_preset("llama-7b"),
                                      {.dims = {.dp = 1, .pp = 1, .cp = ranks}});
  Documents documents(lengths);
  std::vector<Tokens> cu_seqlens = {0};
  while (cu_seqlens.back() < Tokens{65536} * ranks) {
    cu_seqlens.push_back(cu_seqlens.back() + documents.next()->length);
  }
  std::vector<double> seconds;
  ZeppelinPlan placed;
  for (int i = 0; i < 9; ++i) {
    const auto begin = Clock::now();
    placed = shard_zeppelin(cu_seqlens, ranks, *cost);
    seconds.push_back(seconds_since(begin));
  }
  return {{"documents", cu_seqlens.size() - 1},
          {"rings", placed.plan.rings.size()},
          {"moves", placed.plan.moves.size()},
          {"even_share_gap_estimated", placed.gap()},
          {"milliseconds_median", 1e3 * median(seconds)}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  const std::vector<Tokens> lengths = read_lengths(argv[1]).lengths;
  const std::unique_ptr<CostModel> cost = make_synthetic_cost(24576, 1);
  nlohmann::ordered_json result;
  for (const std::string packer : {"fixed-greedy", "wlb", "pool"}) {
    result["step_of_512_micro_batches"][packer] = measure_step(packer, lengths, *cost);
    result["stream_of_a_million_documents"][packer] = measure_stream(packer, lengths, *cost);
  }
  for (const std::string& sharding : sharding_names()) {
    result["sharding_1024_documents_over_16_ranks"][sharding] = measure_sharding(sharding, lengths, *cost);
  }
  for (const int ranks : {128, 4096}) {
    result["zeppelin_65536_tokens_a_rank"][std::to_string(ranks) + "_ranks"] = measure_placement(ranks, lengths);
  }
  fmt::print("{}\n", result.dump(2));
}
