#include "ballast/simulate/predict.h"

#include <algorithm>

#include "ballast/cost/stage_parameters.h"
#include "ballast/simulate/engine.h"
#include "ballast/simulate/zero.h"

namespace ballast {

namespace {

constexpr int kMostLayers = 1 << 12;  // of a stage: room for its layers' handles
constexpr Bytes kControlBytes = 8;    // a digest
constexpr Bytes kNormBytes = 16;      // loss and squared gradient norm, in double precision

// What one rank has of one micro-batch. The same for all its layers.
struct LocalWork {
  Tokens tokens = 0;
  Tokens all_tokens = 0;  // of the micro-batch, over the cp axis
  Seconds attention_forward = 0;
  Seconds attention_backward = 0;
  Seconds reorder_forward = 0;  // of gathered keys and values
  Seconds reorder_backward = 0;
};

LocalWork local_work(const ShardPlan& shard, int cp_rank, const CostModel& cost) {
  LocalWork work{.tokens = shard.num_tokens(cp_rank), .all_tokens = shard.num_tokens()};
  for (const AttentionBlock& block : shard.attention_blocks(cp_rank)) {
    work.attention_forward += cost.attention(Pass::forward, block);
    work.attention_backward += cost.attention(Pass::backward, block);
  }
  if (!shard.gathers_in_order()) {
    work.reorder_forward = cost.reorder(Pass::forward, work.all_tokens);
    work.reorder_backward = cost.reorder(Pass::backward, work.all_tokens);
  }
  return work;
}

class RankProgram {
 public:
  RankProgram(const StepPlan& plan, const ModelSpec& model, const CostModel& cost, const ProgramSettings& settings,
              int rank)
      : plan_(plan), model_(model), cost_(cost), settings_(settings), at_(plan.dims.coordinate(rank)) {
    first_layer_.push_back(0);
    for (const int layers : plan.stage_layers) first_layer_.push_back(first_layer_.back() + layers);
    for (const ShardPlan& shard : plan.shard_plans[static_cast<std::size_t>(at_.dp)]) {
      work_.push_back(local_work(shard, at_.cp, cost));
    }
  }

  std::vector<Op> make() {
    const ParallelDims& dims = plan_.dims;
    span({.kind = SpanKind::LOAD}, 0);
    const std::vector<Action>& actions = plan_.schedule.ranks[static_cast<std::size_t>(at_.pp)];
    const ZeroTransfers transfers = zero_transfers(actions, settings_.zero);
    const auto add_all = [&](const std::map<std::size_t, std::vector<ZeroTransfer>>& by_action, std::size_t i) {
      const auto found = by_action.find(i);
      if (found == by_action.end()) return;
      for (const ZeroTransfer& transfer : found->second) add(transfer);
    };
    for (std::size_t i = 0; i < actions.size(); ++i) {
      gathered_ = scattered_ = -1;
      add_all(transfers.before, i);
      add_all(transfers.after, i);
      add(actions[i]);
    }
    for (const ZeroTransfer& transfer : transfers.at_end) {
      for (int layer = first_layer(transfer.stage); layer < end_layer(transfer.stage); ++layer) {
        ops_.push_back(await(handle_of(transfer.handle, transfer.stage, layer), transfer.stage));
      }
    }
    const std::int64_t parameters =
        rank_parameters(model_, plan_.stage_layers, at_.pp, dims.pp) / settings_.tensor_parallel;
    const int replicas = dims.dp * dims.cp;
    if (model_.tied_head && (at_.pp == 0 || at_.pp == dims.pp - 1)) {
      collective(SpanKind::REDUCE_TIED, Axis::tied, Collective::all_reduce, dims.pp > 1 ? 2 : 1,
                 model_.embedding_parameters() / settings_.tensor_parallel * settings_.gradient_bytes);
    }
    if (settings_.zero == 0) {
      collective(SpanKind::REDUCE_GRAD, Axis::dp_cp, Collective::all_reduce, replicas,
                 parameters * settings_.gradient_bytes);
    }
    collective(SpanKind::REDUCE_NORM, Axis::world, Collective::all_reduce, dims.world_size(), kNormBytes);
    span({.kind = SpanKind::OPTIMIZER}, cost_.optimizer(settings_.zero > 0 ? parameters / replicas : parameters));
    collective(SpanKind::CONTROL, Axis::world, Collective::all_reduce, dims.world_size(), kControlBytes);
    return std::move(ops_);
  }

 private:
  void span(const Span& label, Seconds seconds) {
    ops_.push_back(begin_span(label));
    ops_.push_back(compute(seconds));
    ops_.push_back(end_span());
  }

  void collective(SpanKind kind, Axis axis, Collective operation, int ranks, Bytes bytes) {
    ops_.push_back(
        communicate({.kind = kind, .bytes = bytes, .axis = axis}, cost_.collective(operation, axis, ranks, bytes)));
  }

  // What goes with the action at hand: weights are posted now and awaited layer by layer, gradients posted as layers
  // end.
  void add(const ZeroTransfer& transfer) {
    switch (transfer.kind) {
      case ZeroTransfer::Kind::await:
        gathered_ = transfer.handle;
        return;
      case ZeroTransfer::Kind::post_reshard:
        scattered_ = transfer.handle;
        return;
      case ZeroTransfer::Kind::post_unshard:
        for (int layer = first_layer(transfer.stage); layer < end_layer(transfer.stage); ++layer) {
          post_layer(SpanKind::UNSHARD, transfer.stage, layer, transfer.handle);
        }
        return;
    }
  }

  // A stage without a layer counts as one: its embedding or its head.
  int end_layer(int stage) const { return std::max(first_layer(stage + 1), first_layer(stage) + 1); }
  int handle_of(int transfer, int stage, int layer) const {
    return transfer * kMostLayers + layer - first_layer(stage);
  }

  void await_layer(int stage, int layer) {
    if (gathered_ >= 0) ops_.push_back(await(handle_of(gathered_, stage, layer), stage));
  }

  // The embedding goes with the first layer, the head with the last.
  void post_layer(SpanKind kind, int stage, int layer, int transfer) {
    const int replicas = plan_.dims.dp * plan_.dims.cp;
    const bool gathers = kind == SpanKind::UNSHARD;
    std::int64_t parameters = stage_parameters(model_, plan_.stage_layers, stage, plan_.dims.pp);
    const std::int64_t layers = plan_.stage_layers[static_cast<std::size_t>(stage)];
    const std::int64_t besides = parameters - layers * model_.layer_parameters();
    const bool carries = stage == 0 ? layer == first_layer(stage) : layer + 1 == end_layer(stage);
    parameters = (layers > 0 ? model_.layer_parameters() : 0) + (carries ? besides : 0);
    const Bytes bytes =
        parameters / settings_.tensor_parallel * (gathers ? settings_.weight_bytes : settings_.gradient_bytes);
    ops_.push_back(post(
        {.kind = kind,
         .stage = stage,
         .layer = layer,
         .bytes = gathers ? bytes / replicas * (replicas - 1) : bytes - bytes / replicas,
         .axis = Axis::dp_cp},
        cost_.collective(gathers ? Collective::all_gather : Collective::reduce_scatter, Axis::dp_cp, replicas, bytes),
        handle_of(transfer, stage, layer)));
  }

  void add(const Action& action) {
    const auto [stage, kind, m] = action;
    const LocalWork& work = work_[static_cast<std::size_t>(m)];
    switch (kind) {
      case ActionKind::F:
        return forward(stage, m, work);
      case ActionKind::B:
        return backward(stage, m, work);
      case ActionKind::SEND_F:
        return message(SpanKind::SEND_F, stage, m, stage + 1, work);
      case ActionKind::RECV_F:
        return message(SpanKind::RECV_F, stage, m, stage - 1, work);
      case ActionKind::SEND_B:
        return message(SpanKind::SEND_B, stage, m, stage - 1, work);
      case ActionKind::RECV_B:
        return message(SpanKind::RECV_B, stage, m, stage + 1, work);
    }
  }

  void forward(int stage, int m, const LocalWork& work) {
    ops_.push_back(begin_span({.kind = SpanKind::F, .stage = stage, .micro_batch = m}));
    await_layer(stage, first_layer(stage));
    if (stage == 0) ops_.push_back(compute(cost_.embedding(Pass::forward, work.tokens)));
    for (int layer = first_layer(stage); layer < first_layer(stage + 1); ++layer) {
      if (layer > first_layer(stage)) await_layer(stage, layer);
      forward_layer(stage, m, layer, work);
    }
    if (is_last(stage)) ops_.push_back(compute(cost_.head(Pass::forward, work.tokens)));
    ops_.push_back(end_span());
  }

  void backward(int stage, int m, const LocalWork& work) {
    ops_.push_back(begin_span({.kind = SpanKind::B, .stage = stage, .micro_batch = m}));
    await_layer(stage, end_layer(stage) - 1);
    if (is_last(stage)) ops_.push_back(compute(cost_.head(Pass::backward, work.tokens)));
    for (int layer = first_layer(stage + 1) - 1; layer >= first_layer(stage); --layer) {
      if (layer + 1 < end_layer(stage)) await_layer(stage, layer);
      if (settings_.recompute) forward_layer(stage, m, layer, work);
      ops_.push_back(compute(work.attention_backward));
      scatter(stage, m, layer, work);
      ops_.push_back(compute(cost_.layer(Pass::backward, work.tokens)));
      exchange_tensors(Pass::backward, stage, m, layer, work);
      if (scattered_ >= 0 && layer > first_layer(stage)) post_layer(SpanKind::RESHARD, stage, layer, scattered_);
    }
    if (stage == 0) ops_.push_back(compute(cost_.embedding(Pass::backward, work.tokens)));
    if (scattered_ >= 0) post_layer(SpanKind::RESHARD, stage, first_layer(stage), scattered_);
    ops_.push_back(end_span());
  }

  void forward_layer(int stage, int m, int layer, const LocalWork& work) {
    ops_.push_back(compute(cost_.layer(Pass::forward, work.tokens)));
    exchange_tensors(Pass::forward, stage, m, layer, work);
    gather(stage, m, layer, work);
    ops_.push_back(compute(work.attention_forward));
  }

  void exchange_tensors(Pass pass, int stage, int m, int layer, const LocalWork& work) {
    if (settings_.tensor_parallel == 1) return;
    ops_.push_back(communicate({.kind = SpanKind::EXCHANGE_TP,
                                .stage = stage,
                                .micro_batch = m,
                                .layer = layer,
                                .bytes = work.tokens * cost_.activation_bytes_per_token(),
                                .axis = Axis::tp},
                               cost_.tensor_exchange(pass, work.tokens)));
  }

  // Keys and values of the whole micro-batch, over the cp axis: each rank's own go to all others...
  void gather(int stage, int m, int layer, const LocalWork& work) {
    const Bytes a_token = cost_.kv_bytes_per_token();
    exchange(SpanKind::GATHER_KV, Collective::all_gather, stage, m, layer, work.all_tokens * a_token,
             work.tokens * a_token * (plan_.dims.cp - 1), work.reorder_forward);
  }

  // ...and come back as gradients, which are summed in the gradients' wider type.
  void scatter(int stage, int m, int layer, const LocalWork& work) {
    const Bytes a_token =
        Bytes{2} * model_.num_kv_heads * model_.head_dim * settings_.gradient_bytes / settings_.tensor_parallel;
    exchange(SpanKind::REDUCE_KV, Collective::reduce_scatter, stage, m, layer, work.all_tokens * a_token,
             (work.all_tokens - work.tokens) * a_token, work.reorder_backward);
  }

  void exchange(SpanKind kind, Collective operation, int stage, int m, int layer, Bytes whole, Bytes sent,
                Seconds reorder) {
    ops_.push_back(
        communicate({.kind = kind, .stage = stage, .micro_batch = m, .layer = layer, .bytes = sent, .axis = Axis::cp},
                    cost_.collective(operation, Axis::cp, plan_.dims.cp, whole) + reorder));
  }

  void message(SpanKind kind, int stage, int m, int other_stage, const LocalWork& work) {
    RankCoordinate peer = at_;
    peer.pp = plan_.schedule.rank_of_stage(other_stage);
    const Bytes bytes = work.tokens * cost_.activation_bytes_per_token();
    // The transfer counts where it ends; an empty tensor is not sent at all.
    const Seconds seconds = is_receive(kind) && bytes > 0 ? cost_.collective(Collective::send, Axis::pp, 2, bytes) : 0;
    ops_.push_back(communicate({.kind = kind,
                                .stage = stage,
                                .micro_batch = m,
                                .bytes = is_send(kind) ? bytes : 0,
                                .peer = plan_.dims.rank(peer)},
                               seconds));
  }

  int first_layer(int stage) const { return first_layer_[static_cast<std::size_t>(stage)]; }
  bool is_last(int stage) const { return stage + 1 == plan_.schedule.num_stages(); }

  const StepPlan& plan_;
  const ModelSpec& model_;
  const CostModel& cost_;
  ProgramSettings settings_;
  RankCoordinate at_;
  std::vector<int> first_layer_;  // by stage, and one past the end
  std::vector<LocalWork> work_;   // by micro-batch
  int gathered_ = -1;             // transfer whose weights the action at hand awaits; -1: none
  int scattered_ = -1;            // transfer that takes the gradients of the action at hand
  std::vector<Op> ops_;
};

}  // namespace

ProgramSettings program_settings(const RunSpec& run) {
  // Gradients are accumulated in float32 even where the model computes in bfloat16.
  const bool wide = run.training.precision == Precision::float64;
  return {.gradient_bytes = wide ? 8 : 4,
          .weight_bytes = wide                                            ? 8
                          : run.training.precision == Precision::bfloat16 ? 2
                                                                          : 4,
          .tensor_parallel = run.tensor_parallel,
          .zero = run.zero,
          .recompute = run.recompute == "full"};
}

Program make_program(const StepPlan& plan, const ModelSpec& model, const CostModel& cost,
                     const ProgramSettings& settings) {
  Program program{.step = plan.step, .dims = plan.dims, .ranks = {}};
  for (int rank = 0; rank < plan.dims.world_size(); ++rank) {
    program.ranks.push_back(RankProgram(plan, model, cost, settings, rank).make());
  }
  return program;
}

Timeline predict(const StepPlan& plan, const ModelSpec& model, const CostModel& cost, const ProgramSettings& settings) {
  return execute(make_program(plan, model, cost, settings), "predicted");
}

}  // namespace ballast
