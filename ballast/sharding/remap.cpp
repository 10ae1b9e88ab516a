// Moves for the linear modules: tokens evened out over the ranks at least cost (Zeppelin's remapping, requirement Z6).
#include <algorithm>
#include <numeric>

#include "ballast/sharding/sharder.h"
#include "ballast/solver/transportation.h"

namespace ballast {

void add_moves(ShardPlan& plan) {
  const std::vector<Tokens> tokens = plan.tokens_per_rank();
  const auto ranks = static_cast<Tokens>(tokens.size());
  // Where the tokens do not divide, those that have most keep one more.
  std::vector<std::size_t> order(tokens.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return tokens[a] > tokens[b]; });
  std::vector<std::int64_t> balance(tokens.size());
  std::vector<int> node(tokens.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t rank = order[i];
    const Tokens target = plan.num_tokens() / ranks + (static_cast<Tokens>(i) < plan.num_tokens() % ranks ? 1 : 0);
    balance[rank] = tokens[rank] - target;
    node[rank] = plan.node_of(static_cast<int>(rank));
  }
  plan.moves.clear();
  for (const Shipment& shipment : ship_within_groups_first(balance, node)) {
    plan.moves.push_back({shipment.from, shipment.to, shipment.amount});
  }
}

Seconds add_moves_that_pay(ShardPlan& plan, const CostModel& cost) {
  const Seconds as_it_is = predict_slowest_layer(plan, cost);
  ShardPlan moved = plan;
  add_moves(moved);
  if (moved.moves.empty()) return as_it_is;
  // What is predicted to gain less than the prediction is off by may as well lose.
  constexpr double kWorthMoving = 0.97;
  const Seconds with_moves = predict_slowest_layer(moved, cost);
  if (with_moves >= kWorthMoving * as_it_is) return as_it_is;
  plan = std::move(moved);
  return with_moves;
}

}  // namespace ballast
