#include "ballast/solver/min_max_assignment.h"

#include <coin/Cbc_C_Interface.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <string>

#include "ballast/base/error.h"

namespace ballast {

namespace {

constexpr double kProven = 1e-6;

double heaviest_of(const MinMaxAssignment& problem, const std::vector<int>& bin) {
  std::vector<double> weight(static_cast<std::size_t>(problem.num_bins));
  for (std::size_t i = 0; i < bin.size(); ++i) weight[static_cast<std::size_t>(bin[i])] += problem.weights[i];
  return *std::max_element(weight.begin(), weight.end());
}

// Minimise t, subject to: every item in one bin; a bin's sizes within capacity; a bin's weights within t. Weights are
// in units of the mean over bins, so that t is near 1. Column i * bins + b is item i in bin b; the last is t.
class Program {
 public:
  Program(const MinMaxAssignment& problem, double unit)
      : problem_(problem), unit_(unit), model_(Cbc_newModel(), Cbc_deleteModel) {
    Cbc_setProblemName(model_.get(), "min_max_assignment");
    const int num_items = static_cast<int>(problem.weights.size());
    for (int i = 0; i < num_items; ++i) {
      for (int b = 0; b < problem.num_bins; ++b) Cbc_addCol(model_.get(), "x", 0, 1, 0, 1, 0, nullptr, nullptr);
    }
    Cbc_addCol(model_.get(), "t", 0, 1e9, 1, 0, 0, nullptr, nullptr);
    for (int i = 0; i < num_items; ++i) {
      std::vector<int> columns;
      for (int b = 0; b < problem.num_bins; ++b) columns.push_back(column(i, b));
      add_row(columns, std::vector<double>(columns.size(), 1), 'E', 1);
    }
    for (int b = 0; b < problem.num_bins; ++b) {
      std::vector<int> columns;
      std::vector<double> sizes;
      std::vector<double> weights;
      for (int i = 0; i < num_items; ++i) {
        columns.push_back(column(i, b));
        sizes.push_back(static_cast<double>(problem.sizes[static_cast<std::size_t>(i)]));
        weights.push_back(problem.weights[static_cast<std::size_t>(i)] / unit);
      }
      add_row(columns, sizes, 'L', static_cast<double>(problem.capacity));
      columns.push_back(column(num_items, 0));
      weights.push_back(-1);
      add_row(columns, weights, 'L', 0);
    }
  }

  // The better of the start and what the search found; raises `lower_bound` to what it proved.
  std::vector<int> search(double& lower_bound) {
    const int num_items = static_cast<int>(problem_.weights.size());
    std::vector<int> columns;
    std::vector<double> values;
    for (int i = 0; i < num_items; ++i) {
      columns.push_back(column(i, problem_.start[static_cast<std::size_t>(i)]));
      values.push_back(1);
    }
    columns.push_back(column(num_items, 0));
    values.push_back(heaviest_of(problem_, problem_.start) / unit_);
    Cbc_setMIPStartI(model_.get(), static_cast<int>(columns.size()), columns.data(), values.data());
    Cbc_setLogLevel(model_.get(), 0);
    Cbc_setParameter(model_.get(), "maxNodes", std::to_string(problem_.max_nodes).c_str());
    Cbc_setParameter(model_.get(), "sec", std::to_string(problem_.max_seconds).c_str());
    Cbc_setParameter(model_.get(), "ratio", std::to_string(kProven).c_str());
    Cbc_solve(model_.get());
    const double bound = Cbc_getBestPossibleObjValue(model_.get()) * unit_;
    if (bound < 1e9 * unit_) lower_bound = std::max(lower_bound, bound);
    const double* solution = Cbc_bestSolution(model_.get());
    if (solution == nullptr) return problem_.start;
    std::vector<int> bin;
    for (int i = 0; i < num_items; ++i) {
      const double* first = solution + column(i, 0);
      bin.push_back(static_cast<int>(std::max_element(first, first + problem_.num_bins) - first));
    }
    return bin;
  }

 private:
  int column(int item, int bin) const { return item * problem_.num_bins + bin; }

  void add_row(const std::vector<int>& columns, const std::vector<double>& values, char sense, double bound) {
    Cbc_addRow(model_.get(), "r", static_cast<int>(columns.size()), columns.data(), values.data(), sense, bound);
  }

  const MinMaxAssignment& problem_;
  double unit_;
  std::unique_ptr<Cbc_Model, void (*)(Cbc_Model*)> model_;
};

bool within_capacity(const MinMaxAssignment& problem, const std::vector<int>& bin) {
  std::vector<std::int64_t> size(static_cast<std::size_t>(problem.num_bins));
  for (std::size_t i = 0; i < bin.size(); ++i) size[static_cast<std::size_t>(bin[i])] += problem.sizes[i];
  return *std::max_element(size.begin(), size.end()) <= problem.capacity;
}

}  // namespace

MinMaxResult solve(const MinMaxAssignment& problem) {
  BALLAST_ASSERT(problem.num_bins > 0 && problem.start.size() == problem.weights.size() &&
                     problem.sizes.size() == problem.weights.size() && within_capacity(problem, problem.start),
                 "start is a solution");
  const auto begin = std::chrono::steady_clock::now();
  MinMaxResult result{.bin = problem.start};
  result.heaviest = heaviest_of(problem, result.bin);
  const double mean = std::accumulate(problem.weights.begin(), problem.weights.end(), 0.0) / problem.num_bins;
  result.lower_bound = mean;
  for (const double weight : problem.weights) result.lower_bound = std::max(result.lower_bound, weight);
  if (result.heaviest > result.lower_bound * (1 + kProven)) {
    const std::vector<int> found = Program(problem, mean).search(result.lower_bound);
    const double heaviest = heaviest_of(problem, found);
    if (heaviest < result.heaviest && within_capacity(problem, found)) {
      result.bin = found;
      result.heaviest = heaviest;
    }
  }
  result.lower_bound = std::min(result.lower_bound, result.heaviest);  // rounding of the solver
  result.proven = result.heaviest <= result.lower_bound * (1 + kProven);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace ballast
