// Packs documents by two packers and prints how equal the micro-batches are; then shards one over four ranks.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "ballast/cost/cost_model.h"
#include "ballast/packing/packed_stream.h"
#include "ballast/sharding/sharder.h"

namespace {

// Many short documents and a few long ones.
const std::vector<ballast::Tokens> kLengths = {300, 900, 6100, 150, 420, 2400, 80,  1300, 510,  220, 3900, 640,
                                               90,  770, 8000, 310, 450, 1800, 120, 600,  2700, 350, 5000, 200};

void print_imbalance(const std::string& packer, const ballast::CostModel& cost) {
  ballast::PackingSpec spec;
  spec.packer = packer;
  spec.window = 8192;
  spec.micro_batches = 4;
  std::size_t next = 0;
  ballast::PackedStream stream(spec, cost, [&]() -> std::optional<ballast::Document> {
    if (next == kLengths.size()) return std::nullopt;
    ballast::Document document;
    document.id = static_cast<std::int64_t>(next);
    document.length = kLengths[next++];
    return document;
  });
  while (const std::optional<ballast::PackedStep> step = stream.next()) {
    double slowest = 0;
    double total = 0;
    for (const ballast::MicroBatch& micro_batch : step->micro_batches) {
      const double seconds = cost.micro_batch(micro_batch);
      slowest = std::max(slowest, seconds);
      total += seconds;
    }
    std::printf("%-6s step %lld: %lld tokens, imbalance %.2f\n", packer.c_str(), static_cast<long long>(step->step),
                static_cast<long long>(step->num_tokens()),
                total > 0 ? slowest * static_cast<double>(step->micro_batches.size()) / total : 1.0);
  }
}

}  // namespace

int main() {
  // A document of L tokens costs 4000 L + L^2: half of a document of 4,000 tokens is attention.
  const auto cost = ballast::make_synthetic_cost(4000, 1);
  print_imbalance("plain", *cost);
  print_imbalance("wlb", *cost);

  const ballast::ShardPlan plan = ballast::shard_adaptive({0, 6100, 7000, 7300, 8192}, 4, *cost);
  std::printf("sharded %s:", plan.sharding.c_str());
  for (const ballast::Tokens tokens : plan.tokens_per_rank()) std::printf(" %lld", static_cast<long long>(tokens));
  std::printf(" tokens\n");
}
