#include "ballast/simulate/predict.h"

#include <algorithm>

#include "ballast/simulate/engine.h"
#include "ballast/simulate/zero.h"

namespace ballast {

namespace {

constexpr int kMostLayers = 1 << 12;  // of a stage: room for its layers' handles

class RankProgram {
 public:
  RankProgram(const StepPlan& plan, const CostModel& cost, const ProgramSettings& settings, const StepCosts& costs,
              int rank)
      : plan_(plan),
        settings_(settings),
        costs_(costs),
        rank_(rank),
        at_(plan.dims.coordinate(rank)),
        shares_(costs.shares[static_cast<std::size_t>(at_.dp)]),
        compute_factor_(costs.compute_factor[static_cast<std::size_t>(rank)]),
        kv_bytes_(cost.kv_bytes_per_token()),
        activation_bytes_(cost.activation_bytes_per_token()) {}

  std::vector<Op> make() {
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
      for (int slot = 0; slot < costs_.num_slots(transfer.stage); ++slot) {
        ops_.push_back(await(handle_of(transfer.handle, slot), transfer.stage));
      }
    }
    const ClosingCosts& closing = costs_.closing[static_cast<std::size_t>(at_.pp)];
    if (closing.holds_tied) collective(SpanKind::REDUCE_TIED, Axis::tied, closing.reduce_tied);
    if (settings_.zero == 0) collective(SpanKind::REDUCE_GRAD, Axis::dp_cp, closing.reduce_gradients);
    collective(SpanKind::REDUCE_NORM, Axis::world, costs_.reduce_norm);
    span({.kind = SpanKind::OPTIMIZER}, closing.optimizer);
    if (costs_.checkpoint > 0) span({.kind = SpanKind::CHECKPOINT}, costs_.checkpoint);
    collective(SpanKind::CONTROL, Axis::world, costs_.control);
    return std::move(ops_);
  }

 private:
  void work(Seconds seconds) { ops_.push_back(compute(seconds * compute_factor_)); }

  void span(const Span& label, Seconds seconds) {
    ops_.push_back(begin_span(label));
    work(seconds);
    ops_.push_back(end_span());
  }

  void collective(SpanKind kind, Axis axis, const TransferCost& transfer) {
    ops_.push_back(communicate({.kind = kind, .bytes = transfer.bytes, .axis = axis},
                               transfer.seconds * costs_.factor(axis, rank_)));
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
        for (int slot = 0; slot < costs_.num_slots(transfer.stage); ++slot) {
          post_slot(SpanKind::UNSHARD, transfer.stage, slot, transfer.handle);
        }
        return;
    }
  }

  static int handle_of(int transfer, int slot) { return transfer * kMostLayers + slot; }

  void await_slot(int stage, int slot) {
    if (gathered_ >= 0) ops_.push_back(await(handle_of(gathered_, slot), stage));
  }

  void post_slot(SpanKind kind, int stage, int slot, int transfer) {
    const auto& of_kind = kind == SpanKind::UNSHARD ? costs_.unshard : costs_.reshard;
    const auto [bytes, seconds] = of_kind[static_cast<std::size_t>(stage)][static_cast<std::size_t>(slot)];
    ops_.push_back(
        post({.kind = kind, .stage = stage, .layer = first_layer(stage) + slot, .bytes = bytes, .axis = Axis::dp_cp},
             seconds * costs_.factor(Axis::dp_cp, rank_), handle_of(transfer, slot)));
  }

  void add(const Action& action) {
    const auto [stage, kind, m] = action;
    const ShareCosts& share = shares_[static_cast<std::size_t>(m)][static_cast<std::size_t>(at_.cp)];
    switch (kind) {
      case ActionKind::F:
        return forward(stage, m, share);
      case ActionKind::B:
        return backward(stage, m, share);
      case ActionKind::SEND_F:
        return message(SpanKind::SEND_F, stage, m, stage + 1, share);
      case ActionKind::RECV_F:
        return message(SpanKind::RECV_F, stage, m, stage - 1, share);
      case ActionKind::SEND_B:
        return message(SpanKind::SEND_B, stage, m, stage - 1, share);
      case ActionKind::RECV_B:
        return message(SpanKind::RECV_B, stage, m, stage + 1, share);
    }
  }

  void forward(int stage, int m, const ShareCosts& share) {
    ops_.push_back(begin_span({.kind = SpanKind::F, .stage = stage, .micro_batch = m}));
    for (int slot = 0; slot < costs_.num_slots(stage); ++slot) {
      await_slot(stage, slot);
      if (stage == 0 && slot == 0) work(share.embedding[0]);
      if (slot < costs_.num_layers(stage)) forward_layer(stage, m, slot, share);
    }
    if (is_last(stage)) work(share.head[0]);
    ops_.push_back(end_span());
  }

  void backward(int stage, int m, const ShareCosts& share) {
    ops_.push_back(begin_span({.kind = SpanKind::B, .stage = stage, .micro_batch = m}));
    for (int slot = costs_.num_slots(stage) - 1; slot >= 0; --slot) {
      await_slot(stage, slot);
      if (is_last(stage) && slot + 1 == costs_.num_slots(stage)) work(share.head[1]);
      if (slot < costs_.num_layers(stage)) {
        if (settings_.recompute) forward_layer(stage, m, slot, share);
        attend(1, stage, m, slot, share);
        work(share.layer[1]);
        exchange_tensors(1, stage, m, slot, share);
        work(share.launch_gap[1]);
      }
      if (stage == 0 && slot == 0) work(share.embedding[1]);
      if (slot == 0) work(costs_.accumulation[static_cast<std::size_t>(stage)]);
      if (scattered_ >= 0) post_slot(SpanKind::RESHARD, stage, slot, scattered_);
    }
    ops_.push_back(end_span());
  }

  void forward_layer(int stage, int m, int slot, const ShareCosts& share) {
    work(share.layer[0]);
    exchange_tensors(0, stage, m, slot, share);
    attend(0, stage, m, slot, share);
    work(share.launch_gap[0]);
  }

  void exchange_tensors(std::size_t pass, int stage, int m, int slot, const ShareCosts& share) {
    if (settings_.tensor_parallel == 1) return;
    ops_.push_back(communicate({.kind = SpanKind::EXCHANGE_TP,
                                .stage = stage,
                                .micro_batch = m,
                                .layer = first_layer(stage) + slot,
                                .bytes = share.tokens * activation_bytes_,
                                .axis = Axis::tp},
                               share.tensor_exchange[pass]));
  }

  void attend(std::size_t pass, int stage, int m, int slot, const ShareCosts& share) {
    if (share.rings) {
      ops_.push_back(ring_attention({.kind = SpanKind::RING_KV,
                                     .stage = stage,
                                     .micro_batch = m,
                                     .layer = first_layer(stage) + slot,
                                     .axis = Axis::cp},
                                    share.rings, pass));
      ops_.back().compute_factor = compute_factor_;
      return;
    }
    if (pass == 1) work(share.attention[1]);
    exchange(pass == 0 ? SpanKind::GATHER_KV : SpanKind::REDUCE_KV, stage, m, slot, share);
    if (pass == 0) work(share.attention[0]);
  }

  // Keys and values of the whole micro-batch, over the cp axis: each rank's own go to all others, and come back as
  // gradients, which are summed in the gradients' wider type.
  void exchange(SpanKind kind, int stage, int m, int slot, const ShareCosts& share) {
    const bool gathers = kind == SpanKind::GATHER_KV;
    const Bytes sent = gathers ? share.tokens * kv_bytes_ * (plan_.dims.cp - 1)
                               : (share.all_tokens - share.tokens) * costs_.kv_gradient_bytes;
    ops_.push_back(communicate({.kind = kind,
                                .stage = stage,
                                .micro_batch = m,
                                .layer = first_layer(stage) + slot,
                                .bytes = sent,
                                .axis = Axis::cp},
                               share.kv_exchange[gathers ? 0 : 1] * costs_.factor(Axis::cp, rank_)));
  }

  void message(SpanKind kind, int stage, int m, int other_stage, const ShareCosts& share) {
    RankCoordinate peer = at_;
    peer.pp = plan_.schedule.rank_of_stage(other_stage);
    const int peer_rank = plan_.dims.rank(peer);
    // The transfer counts where it ends.
    const Seconds seconds =
        is_receive(kind) ? share.message * std::max(costs_.factor(Axis::pp, rank_), costs_.factor(Axis::pp, peer_rank))
                         : 0;
    ops_.push_back(communicate({.kind = kind,
                                .stage = stage,
                                .micro_batch = m,
                                .bytes = is_send(kind) ? share.tokens * activation_bytes_ : 0,
                                .peer = peer_rank},
                               seconds));
  }

  int first_layer(int stage) const { return costs_.first_layer[static_cast<std::size_t>(stage)]; }
  bool is_last(int stage) const { return stage + 1 == plan_.schedule.num_stages(); }

  const StepPlan& plan_;
  const ProgramSettings& settings_;
  const StepCosts& costs_;
  const int rank_;
  const RankCoordinate at_;
  const std::vector<std::vector<ShareCosts>>& shares_;  // [micro-batch][cp]
  const double compute_factor_;
  const Bytes kv_bytes_;  // of a token in a layer
  const Bytes activation_bytes_;
  int gathered_ = -1;   // transfer whose weights the action at hand awaits; -1: none
  int scattered_ = -1;  // transfer that takes the gradients of the action at hand
  std::vector<Op> ops_;
};

}  // namespace

Program make_program(const StepPlan& plan, const ModelSpec& model, const CostModel& cost,
                     const ProgramSettings& settings) {
  return make_program(plan, cost, settings, step_costs(plan, model, cost, settings));
}

Program make_program(const StepPlan& plan, const CostModel& cost, const ProgramSettings& settings,
                     const StepCosts& costs) {
  Program program{.step = plan.step, .dims = plan.dims, .ranks = {}};
  for (int rank = 0; rank < plan.dims.world_size(); ++rank) {
    program.ranks.push_back(RankProgram(plan, cost, settings, costs, rank).make());
  }
  return program;
}

Timeline predict(const StepPlan& plan, const ModelSpec& model, const CostModel& cost, const ProgramSettings& settings) {
  return execute(make_program(plan, model, cost, settings), "predicted");
}

}  // namespace ballast
