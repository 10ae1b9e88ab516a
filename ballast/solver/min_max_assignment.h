// Items into bins of limited size such that the heaviest bin is as light as can be: an integer program for a real
// solver (CBC), which proves its answer or says how far from the best it may be.
#pragma once

#include <cstdint>
#include <vector>

namespace ballast {

struct MinMaxAssignment {
  std::vector<double> weights = {};      // of the items, 0 or more
  std::vector<std::int64_t> sizes = {};  // of the items
  int num_bins = 1;
  std::int64_t capacity = 0;  // of a bin, in size
  std::vector<int> start =
      {};  // a bin for every item, within capacity: improved upon, and the answer where nothing better is found
  int max_nodes = 1000;  // of the search: the same answer on every machine
  double max_seconds =
      30;  // processor time, for a machine too slow for the nodes; an answer cut short by it is its own
};

struct MinMaxResult {
  std::vector<int> bin;  // by item
  double heaviest = 0;
  double lower_bound = 0;  // no assignment has a lighter heaviest bin
  bool proven = false;     // heaviest is within 1e-6 of the lower bound
  double seconds = 0;      // it took

  double gap() const { return lower_bound > 0 ? heaviest / lower_bound - 1 : 0; }
};

// REQUIRES: `start` is a solution. Errors of the solver give `start` back, with the bound that arithmetic gives: the
// mean over bins, or the heaviest item.
MinMaxResult solve(const MinMaxAssignment& problem);

}  // namespace ballast
