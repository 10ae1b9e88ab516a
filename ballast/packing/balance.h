// How good a packing is: imbalance of predicted work, gap to the best that could be, how late tokens are trained
// (requirement W13). Everything here is computed from the steps, and knows no packer.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ballast/cost/cost_model.h"
#include "ballast/ir/packed_step.h"
#include "ballast/ir/run_record.h"

namespace ballast {

// Slowest x N / total (WLB-LLM, Table 2): 1 is perfect, N is all work on one. 1 where there is no work at all.
double imbalance(const std::vector<Seconds>& work);

// Predicted latency of each micro-batch, empty ones included.
std::vector<Seconds> predicted_work(const PackedStep& step, const CostModel& cost);

// No packing of these documents into that many micro-batches has a faster slowest one: all work shared out evenly, or
// the longest document on its own.
Seconds lower_bound(const PackedStep& step, const CostModel& cost);
// Slowest micro-batch over the lower bound, minus 1. 0 where there is no work at all.
double lower_bound_gap(const PackedStep& step, const CostModel& cost);

// How far the mix of domains of a step lies from the mix of all steps: the share of the step's tokens that would have
// to be of another domain. Mean over steps; 0 where there is one domain.
class DomainMix {
 public:
  void add(const PackedStep& step);
  double mean_apart() const;

 private:
  std::vector<std::map<int, Tokens>> steps_;
};

// Delay of tokens, in steps: the step that trains a token minus the step whose global batch brought it, and 0 for
// tokens before their turn (a packer over several global batches), or they would hide the late ones. Every figure is
// over tokens, not documents.
class TokenDelay {
 public:
  void add(const PackedStep& step);
  Quantiles overall() const;
  std::map<int, Quantiles> by_domain() const;

 private:
  using Histogram = std::map<std::int64_t, Tokens>;  // tokens by delay
  static Quantiles quantiles(const Histogram& tokens_by_delay);

  std::map<int, Histogram> domains_;
};

}  // namespace ballast
