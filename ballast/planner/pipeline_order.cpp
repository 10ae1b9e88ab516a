#include "ballast/planner/pipeline_order.h"

#include <algorithm>
#include <numeric>

#include "ballast/simulate/engine.h"

namespace ballast {

namespace {

Program pipeline_program(const Schedule& schedule, const std::vector<Seconds>& seconds) {
  Program program{.dims = {.pp = schedule.num_ranks}, .ranks = {}};
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    std::vector<Op>& ops = program.ranks.emplace_back();
    for (const auto& [stage, kind, m] : schedule.ranks[static_cast<std::size_t>(rank)]) {
      const Seconds of_stage = seconds[static_cast<std::size_t>(m)] / schedule.num_stages();
      const auto message = [&, s = stage, at = m](SpanKind span_kind, int other_stage) {
        ops.push_back(communicate(
            {.kind = span_kind, .stage = s, .micro_batch = at, .peer = schedule.rank_of_stage(other_stage)}, 0));
      };
      switch (kind) {
        case ActionKind::F:
          ops.push_back(compute(of_stage / 3));
          break;
        case ActionKind::B:
          ops.push_back(compute(of_stage * 2 / 3));
          break;
        case ActionKind::SEND_F:
          message(SpanKind::SEND_F, stage + 1);
          break;
        case ActionKind::RECV_F:
          message(SpanKind::RECV_F, stage - 1);
          break;
        case ActionKind::SEND_B:
          message(SpanKind::SEND_B, stage - 1);
          break;
        case ActionKind::RECV_B:
          message(SpanKind::RECV_B, stage + 1);
          break;
      }
    }
    // Ends where the slowest rank ends, with a span to read the time from.
    ops.push_back(communicate({.kind = SpanKind::REDUCE_NORM, .axis = Axis::world}, 0));
  }
  return program;
}

}  // namespace

Seconds pipeline_seconds(const Schedule& schedule, const std::vector<Seconds>& seconds) {
  return execute(pipeline_program(schedule, seconds), "predicted").spans.back().end;
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
