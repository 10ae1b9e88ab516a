#include "ballast/planner/pipeline_order.h"

#include <algorithm>
#include <numeric>

#include "ballast/simulate/fast_step.h"

namespace ballast {

Seconds pipeline_seconds(const Schedule& schedule, const std::vector<Seconds>& seconds) {
  const ParallelDims dims{.pp = schedule.num_ranks};
  const auto ranks = static_cast<std::size_t>(schedule.num_ranks);
  // Stages of one layer, which takes all of the stage's time; all else is free.
  StepCosts costs;
  auto& micro_batches = costs.shares.emplace_back();
  for (const Seconds whole : seconds) {
    const Seconds of_stage = whole / schedule.num_stages();
    micro_batches.push_back({{.layer = {of_stage / 3, of_stage * 2 / 3}}});
  }
  for (int stage = 0; stage <= schedule.num_stages(); ++stage) costs.first_layer.push_back(stage);
  costs.accumulation.assign(static_cast<std::size_t>(schedule.num_stages()), 0);
  costs.closing.resize(ranks);
  costs.compute_factor.assign(ranks, 1);
  costs.network_factor.assign(ranks, 1);
  return fast_step(dims, schedule, costs, {}).time.end;
}

std::vector<std::size_t> best_pipeline_order(const Schedule& schedule, const std::vector<Seconds>& seconds) {
  std::vector<std::size_t> arrival(seconds.size());
  std::iota(arrival.begin(), arrival.end(), std::size_t{0});
  std::vector<std::size_t> rising = arrival;
  std::stable_sort(rising.begin(), rising.end(), [&](std::size_t a, std::size_t b) { return seconds[a] < seconds[b]; });
  const std::vector<std::size_t> falling(rising.rbegin(), rising.rend());
  std::vector<std::size_t> rising_then_falling;
  for (std::size_t i = 0; i < rising.size(); i += 2) rising_then_falling.push_back(rising[i]);
  for (std::size_t i = rising.size() / 2 * 2; i >= 2; i -= 2) rising_then_falling.push_back(rising[i - 1]);

  using Order = const std::vector<std::size_t>*;
  Order best = nullptr;
  Seconds best_seconds = 0;
  for (const Order order : std::initializer_list<Order>{&arrival, &rising, &falling, &rising_then_falling}) {
    std::vector<Seconds> ordered;
    for (const std::size_t m : *order) ordered.push_back(seconds[m]);
    const Seconds predicted = pipeline_seconds(schedule, ordered);
    // Rounding must not decide between orders that are equally good.
    if (best == nullptr || predicted < best_seconds * (1 - 1e-9)) {
      best = order;
      best_seconds = predicted;
    }
  }
  return *best;
}

}  // namespace ballast
