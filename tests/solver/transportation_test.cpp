// Shipping within groups first is the least cost of two prices: against linear programming, on random balances.
#include "ballast/solver/transportation.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

namespace ballast {
namespace {

double total(const std::vector<Shipment>& shipments, const std::vector<std::vector<double>>& cost) {
  double sum = 0;
  for (const Shipment& s : shipments) {
    sum += static_cast<double>(s.amount) * cost[static_cast<std::size_t>(s.from)][static_cast<std::size_t>(s.to)];
  }
  return sum;
}

bool settles(std::vector<std::int64_t> balance, const std::vector<Shipment>& shipments) {
  for (const Shipment& s : shipments) {
    if (s.amount <= 0 || s.from == s.to) return false;
    balance[static_cast<std::size_t>(s.from)] -= s.amount;
    balance[static_cast<std::size_t>(s.to)] += s.amount;
  }
  return std::all_of(balance.begin(), balance.end(), [](std::int64_t left) { return left == 0; });
}

TEST(Transportation, AGroupsOwnSurplusMeetsItsOwnDeficitFirst) {
  const std::vector<Shipment> shipments = ship_within_groups_first({5, -3, -4, 2}, {0, 0, 1, 1});
  EXPECT_EQ(shipments, (std::vector<Shipment>{{0, 1, 3}, {0, 2, 2}, {3, 2, 2}}));
}

TEST(Transportation, NothingToShipIsNothingShipped) {
  EXPECT_TRUE(ship_within_groups_first({0, 0}, {0, 1}).empty());
  EXPECT_TRUE(ship_at_least_cost({0, 0}, {{0, 1}, {1, 0}}).empty());
}

RC_GTEST_PROP(Transportation, WithinGroupsFirstCostsNoMoreThanTheLinearProgram, ()) {
  const auto places = *rc::gen::inRange<std::size_t>(1, 10);
  std::vector<std::int64_t> balance;
  std::vector<int> group;
  for (std::size_t i = 0; i < places; ++i) {
    balance.push_back(*rc::gen::inRange<std::int64_t>(-50, 51));
    group.push_back(*rc::gen::inRange(0, 4));
  }
  balance[0] -= std::accumulate(balance.begin(), balance.end(), std::int64_t{0});
  const double inside = *rc::gen::element(0.0, 0.1, 1.0);
  std::vector<std::vector<double>> cost(places, std::vector<double>(places));
  for (std::size_t i = 0; i < places; ++i) {
    for (std::size_t j = 0; j < places; ++j) cost[i][j] = group[i] == group[j] ? inside : 1.5;
  }
  const auto by_rule = ship_within_groups_first(balance, group);
  const auto by_program = ship_at_least_cost(balance, cost);
  RC_ASSERT(settles(balance, by_rule));
  RC_ASSERT(settles(balance, by_program));
  RC_ASSERT(std::abs(total(by_rule, cost) - total(by_program, cost)) < 1e-6);
}

RC_GTEST_PROP(Transportation, AnyPricesAreMetWithWholeNumbers, ()) {
  const auto places = *rc::gen::inRange<std::size_t>(2, 7);
  std::vector<std::int64_t> balance;
  for (std::size_t i = 0; i < places; ++i) balance.push_back(*rc::gen::inRange<std::int64_t>(-9, 10));
  balance[0] -= std::accumulate(balance.begin(), balance.end(), std::int64_t{0});
  std::vector<std::vector<double>> cost(places, std::vector<double>(places));
  for (auto& row : cost) {
    for (double& price : row) price = *rc::gen::inRange(0, 20);
  }
  RC_ASSERT(settles(balance, ship_at_least_cost(balance, cost)));
}

}  // namespace
}  // namespace ballast
