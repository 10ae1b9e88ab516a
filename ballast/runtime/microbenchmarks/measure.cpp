#include "ballast/runtime/microbenchmarks/measure.h"

#include <ATen/Parallel.h>

#include <chrono>

#include "ballast/runtime/comm/collective_benchmark.h"
#include "ballast/runtime/profiler/profile_key.h"

namespace ballast {

namespace {

std::vector<CollectivePoint> local_collectives(const MeasureOptions& options, const MeasureProgress& progress) {
  constexpr Seconds kSecondsAPoint = 0.15;
  std::vector<Bytes> sizes;
  for (Bytes bytes = 4096; bytes <= options.most_collective_bytes; bytes *= 8) sizes.push_back(bytes);
  std::vector<CollectivePoint> all;
  for (std::size_t g = 0; g < options.collective_ranks.size(); ++g) {
    const int ranks = options.collective_ranks[g];
    progress("collectives of " + std::to_string(ranks) + " ranks",
             static_cast<double>(g) / static_cast<double>(options.collective_ranks.size()));
    const auto points = measure_local_collectives(ranks, sizes, kSecondsAPoint);
    all.insert(all.end(), points.begin(), points.end());
  }
  return all;
}

}  // namespace

HardwareProfile measure_profile(const MeasureOptions& options, const MeasureProgress& progress) {
  at::set_num_threads(options.threads);
  const auto begin = std::chrono::steady_clock::now();
  // Shares of the whole that the parts take of a small model's profile.
  const auto part = [&](double from, double to) -> MeasureProgress {
    return [&progress, from, to](const std::string& what, double share) {
      if (progress) progress(what, from + share * (to - from));
    };
  };
  HardwareProfile profile;
  profile.key = key_of_this_machine(options.model, options.precision, options.threads);
  profile.attention = measure_attention(options, part(0.0, 0.5));
  profile.attention_block_overhead = measure_block_overhead(options);
  profile.linear = measure_linear(options, part(0.5, 0.8));
  profile.optimizer_seconds_per_parameter = measure_optimizer(options);
  profile.collectives = local_collectives(options, part(0.8, 1.0));
  profile.seconds_taken = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return profile;
}

}  // namespace ballast
