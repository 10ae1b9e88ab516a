// Does a workload have the failure mode at all (requirement W13)? From document lengths alone, before any training:
// where the tokens and the work are, how uneven plain packing is, and what each remedy would gain.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ballast/cost/cost_model.h"
#include "ballast/spec/run_spec.h"

namespace ballast {

struct LengthBand {
  Tokens from = 0;  // tokens, inclusive
  Tokens to = 0;    // exclusive
  std::int64_t documents = 0;
  double token_share = 0;
  double squares_share = 0;  // of the sum of squared lengths: where attention is
};

// One way to pack and to shard, over the same documents.
struct StrategyForecast {
  std::string packer;
  std::string sharding;
  double imbalance_micro_batch = 1;  // slowest x N / total, weighed by work
  double imbalance_cp = 1;           // the same over the ranks of a micro-batch
  double token_delay_steps = 0;      // mean
  double speedup = 1;                // over plain with per-sequence, at equal work
};

struct WindowForecast {
  Tokens window = 0;
  double imbalance = 1;  // plain with per-sequence: micro-batch and cp together
  double attention_share = 0;
  double speedup = 1;  // of the best strategy
};

enum class Verdict { balance_bound, communication_bound, not_imbalanced };
std::string to_string(Verdict verdict);  // "balance-bound"

struct WorkloadAnalysis {
  std::int64_t documents = 0;
  Tokens tokens = 0;
  std::vector<LengthBand> bands;  // powers of two
  double attention_share = 0;     // of predicted work under plain packing
  double communication_share =
      0;  // of a micro-batch: keys and values gathered and reduced over cp; 0 for synthetic costs
  std::vector<StrategyForecast> strategies;  // plain with per-sequence first
  std::vector<WindowForecast> windows;       // the asked one and others, rising
  Verdict verdict = Verdict::not_imbalanced;
  std::string why;
};

// `lengths` in the order of training; figures by strategy are over at most the first 300 steps of it. `cp`: context
// parallel ranks a micro-batch. Throws UserError as make_packer does. REQUIRES: lengths is not empty.
WorkloadAnalysis analyze_workload(const std::vector<Tokens>& lengths, Tokens window, int micro_batches, int cp,
                                  const CostModel& cost);

}  // namespace ballast
