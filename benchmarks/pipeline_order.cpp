// What the order of unequal micro-batches is worth in a pipeline: predicted step of the best order that the planner
// tries over that of a random order, 200 random steps with lengths spread log-normally, B twice F. One JSON object.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <vector>

#include "ballast/base/random.h"
#include "ballast/planner/pipeline_order.h"
#include "ballast/schedule/make_schedule.h"

using namespace ballast;

namespace {

constexpr int kSteps = 200;

double normal(Random& random) {  // Box-Muller
  const auto uniform = [&] { return (static_cast<double>(random.below(1U << 30)) + 0.5) / (1U << 30); };
  const double radius = std::sqrt(-2 * std::log(uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

// Seconds of `kSteps` steps: in a random order, and in the best.
nlohmann::json measure(const ScheduleSpec& spec, int ranks, int micro_batches, double sigma) {
  Random random(mix_seed(1, static_cast<std::uint64_t>(micro_batches)));
  const Schedule schedule = make_schedule(spec, ranks, micro_batches);
  Seconds as_they_come = 0;
  Seconds best = 0;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<Seconds> seconds;
    for (int m = 0; m < micro_batches; ++m) seconds.push_back(std::exp(sigma * normal(random)));
    as_they_come += pipeline_seconds(schedule, seconds);
    std::vector<Seconds> ordered;
    for (const std::size_t m : best_pipeline_order(schedule, seconds)) ordered.push_back(seconds[m]);
    best += pipeline_seconds(schedule, ordered);
  }
  return {{"schedule", spec.name},
          {"pipeline_ranks", ranks},
          {"virtual_stages", spec.virtual_stages},
          {"micro_batches", micro_batches},
          {"sigma", sigma},
          {"best_over_random_order_seconds", best / as_they_come}};
}

}  // namespace

int main() {
  nlohmann::json rows = nlohmann::json::array();
  for (const ScheduleSpec& spec : {ScheduleSpec{"1f1b", 1}, ScheduleSpec{"interleaved", 2}}) {
    for (const int micro_batches : {8, 16}) {
      for (const double sigma : {0.1, 0.6}) rows.push_back(measure(spec, 4, micro_batches, sigma));
    }
  }
  fmt::print("{}\n", nlohmann::json{{"steps", kSteps}, {"predicted", std::move(rows)}}.dump(2));
}
