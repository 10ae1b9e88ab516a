// Who sends how much to whom, at the least cost: supplies at some places, demands at others, a price for every pair
// (the transportation problem; Zeppelin's remapping, requirement Z6).
#pragma once

#include <cstdint>
#include <vector>

namespace ballast {

struct Shipment {
  int from = 0;
  int to = 0;
  std::int64_t amount = 0;
  bool operator==(const Shipment&) const = default;
};

// balance[i]: what place i has to give (above 0) or lacks (below 0); group[i]: its group. A shipment inside a group
// costs less than one between groups. The least cost sends as little as can be between groups: a group's own surplus
// meets its own deficit, and only what is left over crosses.
//
// Why that is optimal. Of any solution, the amount that crosses is at least the sum over groups of max(0, balance of
// the group), since what a group has too much of must leave it. The amount shipped in all is the sum of the surpluses
// when nothing is shipped on, and no solution ships less. Both are reached at once here, and with prices 0 <= inside <
// across the cost is inside x (all - crossing) + across x crossing, which rises with either.
//
// Ascending by from, then to. REQUIRES: balances add up to 0.
std::vector<Shipment> ship_within_groups_first(const std::vector<std::int64_t>& balance, const std::vector<int>& group);

// Any prices, by linear programming (CLP's dual simplex): vertices of the problem are whole numbers. cost[i][j]: of one
// unit from place i to place j, 0 or more. Slower: for topologies of more tiers, and to check the rule above.
// REQUIRES: balances add up to 0. Throws RunError where the solver fails.
std::vector<Shipment> ship_at_least_cost(const std::vector<std::int64_t>& balance,
                                         const std::vector<std::vector<double>>& cost);

}  // namespace ballast
