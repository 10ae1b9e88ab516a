// How long every part of a step takes, worked out once from the cost model: what the program of operations (predict.h)
// and the fast path without a timeline (fast_step.h) both run on, so that they cannot price a part differently.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "ballast/cost/cost_model.h"
#include "ballast/cost/ring_pass.h"
#include "ballast/ir/step_plan.h"
#include "ballast/spec/model_spec.h"
#include "ballast/spec/run_spec.h"

namespace ballast {

// A rank that takes so many times as long: a throttled GPU, a worn network card.
struct SlowRank {
  int rank = 0;
  double compute = 1;
  double network = 1;  // of exchanges that leave the node: an exchange goes at the pace of its slowest member
};

struct ProgramSettings {
  Bytes gradient_bytes = 4;  // of a number of a gradient
  Bytes weight_bytes = 4;    // of a weight
  int tensor_parallel = 1;   // GPUs that stand as one rank and share out its parameters
  int zero = 0;              // ZeRO stage over dp x cp
  bool recompute = false;    // a layer's forward once more before its backward
  std::vector<SlowRank> slow_ranks = {};
  std::vector<Axis> network_axes = {};       // whose groups leave the node
  std::array<Seconds, 2> layer_launch = {};  // a layer takes no less, forward and backward
  Seconds checkpoint_seconds = 0;            // that every rank writes at the end of the step; 0: none is due
};

ProgramSettings program_settings(const RunSpec& run);

// What one cp rank has of one micro-batch, in one layer where it is of layers; [0] forward, [1] backward.
struct ShareCosts {
  Tokens tokens = 0;
  Tokens all_tokens = 0;  // of the micro-batch, over the cp axis
  std::array<Seconds, 2> embedding = {};
  std::array<Seconds, 2> layer = {};
  std::array<Seconds, 2> attention = {};
  std::array<Seconds, 2> tensor_exchange = {};
  std::array<Seconds, 2> head = {};
  std::array<Seconds, 2> kv_exchange = {};  // keys and values gathered, their gradients scattered; reordering included
  std::array<Seconds, 2> launch_gap = {};   // what launching a layer takes longer than all of it
  Seconds message = 0;                      // between stages
  bool gathers_in_order = true;             // the micro-batch does: nothing needs to be put back in packed order
  // Of a micro-batch whose keys go round rings: attention with its messages, [0] forward, [1] backward, the same for
  // all its ranks; `attention` above is then what the rank computes in it, and kv_exchange 0.
  std::shared_ptr<const std::vector<RingPass>> rings = {};
};

struct TransferCost {
  Bytes bytes = 0;  // sent by a rank
  Seconds seconds = 0;
};

// Exchanges and optimizer of one pipeline rank, after its last action.
struct ClosingCosts {
  bool holds_tied = false;  // a tied embedding that another pipeline rank has, too, or could
  TransferCost reduce_tied;
  TransferCost reduce_gradients;  // where they are not scattered in the background
  Seconds optimizer = 0;
};

struct StepCosts {
  std::vector<std::vector<std::vector<ShareCosts>>> shares;  // [dp][micro-batch][cp]
  std::vector<int> first_layer;                              // by stage, and one past the end
  // [stage][slot], of the background: a slot a layer, and one where a stage has none. The embedding goes with the first
  // slot, the head with the last.
  std::vector<std::vector<TransferCost>> unshard;
  std::vector<std::vector<TransferCost>> reshard;
  std::vector<Seconds> accumulation;  // by stage, at the end of every backward
  std::vector<ClosingCosts> closing;  // by pipeline rank
  TransferCost reduce_norm;
  Seconds checkpoint = 0;  // 0: none
  TransferCost control;
  Bytes kv_gradient_bytes = 0;         // of a token's keys and values in a layer
  std::vector<double> compute_factor;  // by rank, 1 where it is not slow
  std::vector<double> network_factor;
  std::vector<Axis> network_axes;

  int num_layers(int stage) const;
  int num_slots(int stage) const;
  // Of an exchange over `axis` by a rank of this factor.
  double factor(Axis axis, int rank) const;
};

// By cp rank; what it computes, and the exchanges between tensor parallel GPUs.
std::vector<ShareCosts> share_costs(const ShardPlan& shard, const CostModel& cost);
// The other exchanges of these shares of one micro-batch, which depend on where the ranks sit: over the cp axis, and
// between stages.
void price_kv_exchange(std::vector<ShareCosts>& shares, const ModelSpec& model, const CostModel& cost,
                       const ProgramSettings& settings);
void price_messages(std::vector<ShareCosts>& shares, const ParallelDims& dims, const CostModel& cost);

// Of shares that are priced. REQUIRES: slow ranks are ranks.
StepCosts step_costs(const ParallelDims& dims, const std::vector<int>& stage_layers,
                     std::vector<std::vector<std::vector<ShareCosts>>> shares, const ModelSpec& model,
                     const CostModel& cost, const ProgramSettings& settings);

// REQUIRES: the plan has no violations; slow ranks are ranks.
StepCosts step_costs(const StepPlan& plan, const ModelSpec& model, const CostModel& cost,
                     const ProgramSettings& settings);

}  // namespace ballast
