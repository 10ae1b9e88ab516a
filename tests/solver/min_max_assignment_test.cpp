#include "ballast/solver/min_max_assignment.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>

namespace ballast {
namespace {

TEST(MinMaxAssignment, ProvesTheBestOfAnUnluckyStart) {
  // 5 + 5 + 4 against 4 + 4 + 3 + ...: greedy's 14 to 11 becomes 13 to 12.
  const MinMaxAssignment problem{.weights = {5, 5, 4, 4, 4, 3},
                                 .sizes = {1, 1, 1, 1, 1, 1},
                                 .num_bins = 2,
                                 .capacity = 6,
                                 .start = {0, 0, 0, 1, 1, 1}};
  const MinMaxResult result = solve(problem);
  EXPECT_TRUE(result.proven);
  EXPECT_DOUBLE_EQ(result.heaviest, 13);
}

TEST(MinMaxAssignment, KeepsCapacity) {
  // Even weights would need three items in a bin.
  const MinMaxAssignment problem{
      .weights = {6, 2, 2, 2}, .sizes = {1, 1, 1, 1}, .num_bins = 2, .capacity = 2, .start = {0, 0, 1, 1}};
  const MinMaxResult result = solve(problem);
  EXPECT_DOUBLE_EQ(result.heaviest, 8);
  EXPECT_TRUE(result.proven);
}

TEST(MinMaxAssignment, NeedsNoSearchWhereTheStartMeetsTheBound) {
  const MinMaxAssignment problem{
      .weights = {9, 3, 3}, .sizes = {1, 1, 1}, .num_bins = 2, .capacity = 3, .start = {0, 1, 1}};
  const MinMaxResult result = solve(problem);
  EXPECT_TRUE(result.proven);
  EXPECT_EQ(result.bin, problem.start);
}

// Against every assignment there is.
double best_by_trying_all(const MinMaxAssignment& problem) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<int> bin(problem.weights.size(), 0);
  while (true) {
    std::vector<double> weight(static_cast<std::size_t>(problem.num_bins));
    std::vector<std::int64_t> size(weight.size());
    for (std::size_t i = 0; i < bin.size(); ++i) {
      weight[static_cast<std::size_t>(bin[i])] += problem.weights[i];
      size[static_cast<std::size_t>(bin[i])] += problem.sizes[i];
    }
    if (*std::max_element(size.begin(), size.end()) <= problem.capacity) {
      best = std::min(best, *std::max_element(weight.begin(), weight.end()));
    }
    std::size_t at = 0;
    while (at < bin.size() && ++bin[at] == problem.num_bins) bin[at++] = 0;
    if (at == bin.size()) return best;
  }
}

RC_GTEST_PROP(MinMaxAssignment, IsTheBestThereIsAndSaysSo, ()) {
  MinMaxAssignment problem;
  problem.num_bins = *rc::gen::inRange(1, 4);
  const int items = *rc::gen::inRange(1, 7);
  std::int64_t largest = 0;
  std::vector<std::int64_t> size(static_cast<std::size_t>(problem.num_bins));
  for (int i = 0; i < items; ++i) {
    problem.sizes.push_back(*rc::gen::inRange<std::int64_t>(0, 10));
    problem.weights.push_back(static_cast<double>(*rc::gen::inRange(0, 100)));
    problem.start.push_back(i % problem.num_bins);
    size[static_cast<std::size_t>(problem.start.back())] += problem.sizes.back();
  }
  for (const std::int64_t s : size) largest = std::max(largest, s);
  problem.capacity = largest;
  const MinMaxResult result = solve(problem);
  const double best = best_by_trying_all(problem);
  RC_ASSERT(std::abs(result.heaviest - best) <= 1e-5 * (1 + best));
  RC_ASSERT(result.lower_bound <= best * (1 + 1e-9) + 1e-9);
  RC_ASSERT(result.proven);
}

}  // namespace
}  // namespace ballast
