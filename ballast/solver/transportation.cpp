#include "ballast/solver/transportation.h"

#include <coin/ClpSimplex.hpp>
#include <coin/CoinPackedMatrix.hpp>

#include <algorithm>
#include <cmath>

#include "ballast/base/error.h"

namespace ballast {

namespace {

// Surpluses and deficits in order, matched greedily.
void match(const std::vector<int>& places, std::vector<std::int64_t>& balance, std::vector<Shipment>& shipments) {
  std::size_t taker = 0;
  for (const int giver : places) {
    std::int64_t& left = balance[static_cast<std::size_t>(giver)];
    while (left > 0) {
      while (taker < places.size() && balance[static_cast<std::size_t>(places[taker])] >= 0) ++taker;
      if (taker == places.size()) return;
      std::int64_t& lacking = balance[static_cast<std::size_t>(places[taker])];
      const std::int64_t amount = std::min(left, -lacking);
      shipments.push_back({giver, places[taker], amount});
      left -= amount;
      lacking += amount;
    }
  }
}

void sort_shipments(std::vector<Shipment>& shipments) {
  std::sort(shipments.begin(), shipments.end(),
            [](const Shipment& a, const Shipment& b) { return a.from != b.from ? a.from < b.from : a.to < b.to; });
}

}  // namespace

std::vector<Shipment> ship_within_groups_first(const std::vector<std::int64_t>& balance,
                                               const std::vector<int>& group) {
  std::vector<std::int64_t> left = balance;
  std::vector<int> all;
  for (int place = 0; place < static_cast<int>(balance.size()); ++place) all.push_back(place);
  std::vector<int> by_group = all;
  std::stable_sort(by_group.begin(), by_group.end(), [&](int a, int b) {
    return group[static_cast<std::size_t>(a)] < group[static_cast<std::size_t>(b)];
  });
  std::vector<Shipment> shipments;
  for (std::size_t first = 0; first < by_group.size();) {
    std::size_t last = first;
    std::vector<int> members;
    for (; last < by_group.size() &&
           group[static_cast<std::size_t>(by_group[last])] == group[static_cast<std::size_t>(by_group[first])];
         ++last) {
      members.push_back(by_group[last]);
    }
    match(members, left, shipments);
    first = last;
  }
  match(all, left, shipments);
  sort_shipments(shipments);
  return shipments;
}

std::vector<Shipment> ship_at_least_cost(const std::vector<std::int64_t>& balance,
                                         const std::vector<std::vector<double>>& cost) {
  std::vector<int> givers;
  std::vector<int> takers;
  for (int place = 0; place < static_cast<int>(balance.size()); ++place) {
    if (balance[static_cast<std::size_t>(place)] > 0) givers.push_back(place);
    if (balance[static_cast<std::size_t>(place)] < 0) takers.push_back(place);
  }
  if (givers.empty()) return {};
  // One column a pair of giver and taker; one row a place.
  const auto rows = static_cast<int>(givers.size() + takers.size());
  CoinPackedMatrix matrix(true, 0, 0);
  matrix.setDimensions(rows, 0);
  std::vector<double> price;
  for (std::size_t g = 0; g < givers.size(); ++g) {
    for (std::size_t t = 0; t < takers.size(); ++t) {
      const int at[2] = {static_cast<int>(g), static_cast<int>(givers.size() + t)};
      const double ones[2] = {1, 1};
      matrix.appendCol(2, at, ones);
      price.push_back(cost[static_cast<std::size_t>(givers[g])][static_cast<std::size_t>(takers[t])]);
    }
  }
  std::vector<double> bound;
  for (const int place : givers) bound.push_back(static_cast<double>(balance[static_cast<std::size_t>(place)]));
  for (const int place : takers) bound.push_back(static_cast<double>(-balance[static_cast<std::size_t>(place)]));
  ClpSimplex problem;
  problem.setLogLevel(0);
  problem.loadProblem(matrix, nullptr, nullptr, price.data(), bound.data(), bound.data());
  problem.dual();
  if (!problem.isProvenOptimal()) throw RunError("the transportation problem was not solved");
  std::vector<Shipment> shipments;
  const double* solution = problem.primalColumnSolution();
  for (std::size_t g = 0; g < givers.size(); ++g) {
    for (std::size_t t = 0; t < takers.size(); ++t) {
      const auto amount = static_cast<std::int64_t>(std::llround(solution[g * takers.size() + t]));
      if (amount > 0) shipments.push_back({givers[g], takers[t], amount});
    }
  }
  sort_shipments(shipments);
  return shipments;
}

}  // namespace ballast
