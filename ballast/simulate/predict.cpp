#include "ballast/simulate/predict.h"

#include "ballast/simulate/engine.h"

namespace ballast {

namespace {

constexpr Bytes kControlBytes = 8;  // a digest
constexpr Bytes kNormBytes = 16;    // loss and squared gradient norm, in double precision

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
  RankProgram(const StepPlan& plan, const ModelSpec& model, const CostModel& cost, Bytes gradient_bytes, int rank)
      : plan_(plan), model_(model), cost_(cost), gradient_bytes_(gradient_bytes), at_(plan.dims.coordinate(rank)) {
    first_layer_.push_back(0);
    for (const int layers : plan.stage_layers) first_layer_.push_back(first_layer_.back() + layers);
    for (const ShardPlan& shard : plan.shard_plans[static_cast<std::size_t>(at_.dp)]) {
      work_.push_back(local_work(shard, at_.cp, cost));
    }
  }

  std::vector<Op> make() {
    const ParallelDims& dims = plan_.dims;
    span({.kind = SpanKind::LOAD}, 0);
    for (const Action& action : plan_.schedule.ranks[static_cast<std::size_t>(at_.pp)]) add(action);
    const std::int64_t parameters = rank_parameters(plan_, model_, at_.pp);
    if (model_.tied_head && (at_.pp == 0 || at_.pp == dims.pp - 1)) {
      collective(SpanKind::REDUCE_TIED, Axis::tied, Collective::all_reduce, dims.pp > 1 ? 2 : 1,
                 model_.embedding_parameters() * gradient_bytes_);
    }
    collective(SpanKind::REDUCE_GRAD, Axis::dp_cp, Collective::all_reduce, dims.dp * dims.cp,
               parameters * gradient_bytes_);
    collective(SpanKind::REDUCE_NORM, Axis::world, Collective::all_reduce, dims.world_size(), kNormBytes);
    span({.kind = SpanKind::OPTIMIZER}, cost_.optimizer(parameters));
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
        communicate({.kind = kind, .bytes = bytes, .axis = axis}, cost_.collective(operation, ranks, bytes)));
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
    if (stage == 0) ops_.push_back(compute(cost_.embedding(Pass::forward, work.tokens)));
    for (int layer = first_layer(stage); layer < first_layer(stage + 1); ++layer) {
      ops_.push_back(compute(cost_.layer(Pass::forward, work.tokens)));
      gather(stage, m, layer, work);
      ops_.push_back(compute(work.attention_forward));
    }
    if (is_last(stage)) ops_.push_back(compute(cost_.head(Pass::forward, work.tokens)));
    ops_.push_back(end_span());
  }

  void backward(int stage, int m, const LocalWork& work) {
    ops_.push_back(begin_span({.kind = SpanKind::B, .stage = stage, .micro_batch = m}));
    if (is_last(stage)) ops_.push_back(compute(cost_.head(Pass::backward, work.tokens)));
    for (int layer = first_layer(stage + 1) - 1; layer >= first_layer(stage); --layer) {
      ops_.push_back(compute(work.attention_backward));
      scatter(stage, m, layer, work);
      ops_.push_back(compute(cost_.layer(Pass::backward, work.tokens)));
    }
    if (stage == 0) ops_.push_back(compute(cost_.embedding(Pass::backward, work.tokens)));
    ops_.push_back(end_span());
  }

  // Keys and values of the whole micro-batch, over the cp axis: each rank's own go to all others...
  void gather(int stage, int m, int layer, const LocalWork& work) {
    const Bytes a_token = cost_.kv_bytes_per_token();
    exchange(SpanKind::GATHER_KV, Collective::all_gather, stage, m, layer, work.all_tokens * a_token,
             work.tokens * a_token * (plan_.dims.cp - 1), work.reorder_forward);
  }

  // ...and come back as gradients, which are summed in the gradients' wider type.
  void scatter(int stage, int m, int layer, const LocalWork& work) {
    const Bytes a_token = Bytes{2} * model_.num_kv_heads * model_.head_dim * gradient_bytes_;
    exchange(SpanKind::REDUCE_KV, Collective::reduce_scatter, stage, m, layer, work.all_tokens * a_token,
             (work.all_tokens - work.tokens) * a_token, work.reorder_backward);
  }

  void exchange(SpanKind kind, Collective operation, int stage, int m, int layer, Bytes whole, Bytes sent,
                Seconds reorder) {
    ops_.push_back(
        communicate({.kind = kind, .stage = stage, .micro_batch = m, .layer = layer, .bytes = sent, .axis = Axis::cp},
                    cost_.collective(operation, plan_.dims.cp, whole) + reorder));
  }

  void message(SpanKind kind, int stage, int m, int other_stage, const LocalWork& work) {
    RankCoordinate peer = at_;
    peer.pp = plan_.schedule.rank_of_stage(other_stage);
    const Bytes bytes = work.tokens * cost_.activation_bytes_per_token();
    // The transfer counts where it ends; an empty tensor is not sent at all.
    const Seconds seconds = is_receive(kind) && bytes > 0 ? cost_.collective(Collective::send, 2, bytes) : 0;
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
  Bytes gradient_bytes_;  // of a number
  RankCoordinate at_;
  std::vector<int> first_layer_;  // by stage, and one past the end
  std::vector<LocalWork> work_;   // by micro-batch
  std::vector<Op> ops_;
};

}  // namespace

std::int64_t rank_parameters(const StepPlan& plan, const ModelSpec& model, int pp) {
  std::int64_t count = 0;
  for (int stage = pp; stage < plan.schedule.num_stages(); stage += plan.dims.pp) {
    count += plan.stage_layers[static_cast<std::size_t>(stage)] * model.layer_parameters();
  }
  if (pp == 0) count += model.embedding_parameters();
  if (pp == plan.dims.pp - 1) count += model.head_parameters();
  if (pp == plan.dims.pp - 1 && pp > 0 && model.tied_head) count += model.embedding_parameters();
  return count;
}

Program make_program(const StepPlan& plan, const ModelSpec& model, const CostModel& cost, Bytes gradient_bytes) {
  Program program{.step = plan.step, .dims = plan.dims, .ranks = {}};
  for (int rank = 0; rank < plan.dims.world_size(); ++rank) {
    program.ranks.push_back(RankProgram(plan, model, cost, gradient_bytes, rank).make());
  }
  return program;
}

Timeline predict(const StepPlan& plan, const ModelSpec& model, const CostModel& cost, Bytes gradient_bytes) {
  return execute(make_program(plan, model, cost, gradient_bytes), "predicted");
}

}  // namespace ballast
