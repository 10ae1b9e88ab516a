// All-gather of keys and values, attention of the local queries block by block, and a reduce-scatter of the gradients
// of keys and values in backward (requirement L4).
#include <ATen/ATen.h>

#include <utility>
#include <vector>

#include "ballast/runtime/attention/core.h"
#include "ballast/runtime/attention/local_kernel.h"

namespace ballast {

namespace {

at::Tensor index_tensor(const std::vector<Tokens>& rows) { return at::tensor(at::ArrayRef<Tokens>(rows), at::kLong); }

at::Tensor reorder(const at::Tensor& rows_RX, const at::Tensor& order) {
  return order.defined() ? rows_RX.index_select(0, order) : rows_RX;
}

class GatherCore final : public AttentionCore {
 public:
  GatherCore(const ShardPlan& plan, const AttentionContext& context)
      : context_(context), rows_(plan.tokens_per_rank()) {
    std::int64_t row = 0;
    for (const AttentionBlock& block : plan.attention_blocks(context.cp.rank())) {
      blocks_.push_back({row, block});
      row += block.queries.size();
      const Tokens before = block.keys.size() - block.queries.size();
      if (before > 0) parts_.push_back({block.queries.size(), before, false});
      parts_.push_back({block.queries.size(), block.queries.size(), true});
    }
    if (plan.gathers_in_order()) return;
    const std::vector<Tokens> to_gathered = plan.packed_to_gathered();
    std::vector<Tokens> to_packed(to_gathered.size());
    for (std::size_t t = 0; t < to_gathered.size(); ++t)
      to_packed[static_cast<std::size_t>(to_gathered[t])] = static_cast<Tokens>(t);
    packed_to_gathered_ = index_tensor(to_gathered);
    gathered_to_packed_ = index_tensor(to_packed);
  }

  AttentionState forward(int layer, const at::Tensor& q_THD, const at::Tensor& k_TKD,
                         const at::Tensor& v_TKD) const override {
    AttentionState state{.q_THD = q_THD, .kv = gather(layer, k_TKD, v_TKD), .out_THD = {}, .lse_HT = {}};
    const auto wide = q_THD.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    state.out_THD = at::empty(q_THD.sizes(), q_THD.options());
    state.lse_HT = at::empty({q_THD.size(1), q_THD.size(0)}, q_THD.options().dtype(wide));
    for (const auto& [row, work] : blocks_) {
      const at::Tensor kv = state.kv.slice(0, work.keys.begin, work.keys.end);
      const auto count = work.queries.size();
      const AttentionOutput block = attend_block(q_THD.narrow(0, row, count), kv.select(1, 0), kv.select(1, 1));
      state.out_THD.narrow(0, row, count).copy_(block.out_QHD);
      state.lse_HT.narrow(1, row, count).copy_(block.lse_HQ);
    }
    context_.pace.attention_done(true, parts_);
    return state;
  }

  std::array<at::Tensor, 3> backward(int layer, const AttentionState& state,
                                     const at::Tensor& dout_THD) const override {
    // Several blocks may read the same keys, so their gradients add up, in the log-sum-exp's type.
    at::Tensor dq_THD = at::zeros(state.q_THD.sizes(), state.lse_HT.options());
    at::Tensor dkv_T2KD = at::zeros(state.kv.sizes(), state.lse_HT.options());
    for (const auto& [row, work] : blocks_) {
      const auto count = work.queries.size();
      const at::Tensor kv = state.kv.slice(0, work.keys.begin, work.keys.end);
      const at::Tensor dkv = dkv_T2KD.slice(0, work.keys.begin, work.keys.end);
      attend_block_backward(dout_THD.narrow(0, row, count), state.q_THD.narrow(0, row, count), kv.select(1, 0),
                            kv.select(1, 1), {state.out_THD.narrow(0, row, count), state.lse_HT.narrow(1, row, count)},
                            {dq_THD.narrow(0, row, count), dkv.select(1, 0), dkv.select(1, 1)});
    }
    context_.pace.attention_done(false, parts_);
    const auto type = state.q_THD.scalar_type();
    const at::Tensor local_dkv_T2KD = scatter(layer, dkv_T2KD).to(type);
    return {dq_THD.to(type), local_dkv_T2KD.select(1, 0), local_dkv_T2KD.select(1, 1)};
  }

 private:
  struct Block {
    std::int64_t first_row;  // of its queries, in local order
    AttentionBlock work;
  };

  // Every rank's keys and values in packed order: kv_T2KD.
  at::Tensor gather(int layer, const at::Tensor& k_TKD, const at::Tensor& v_TKD) const {
    const at::Tensor local_T2KD = at::stack({k_TKD, v_TKD}, 1);
    const Bytes sent = static_cast<Bytes>(local_T2KD.nbytes()) * (context_.cp.size() - 1);
    const SpanScope scope(context_.recorder, context_.span(SpanKind::GATHER_KV, layer, sent));
    return reorder(context_.cp.all_gather_rows(local_T2KD, rows_), packed_to_gathered_);
  }

  // The gradients that all ranks found for this rank's keys and values, summed.
  at::Tensor scatter(int layer, const at::Tensor& dkv_T2KD) const {
    const auto own = rows_[static_cast<std::size_t>(context_.cp.rank())];
    const Bytes sent =
        static_cast<Bytes>(dkv_T2KD.nbytes()) - own * static_cast<Bytes>(dkv_T2KD.slice(0, 0, 1).nbytes());
    const SpanScope scope(context_.recorder, context_.span(SpanKind::REDUCE_KV, layer, sent));
    return context_.cp.reduce_scatter_rows(reorder(dkv_T2KD, gathered_to_packed_), rows_);
  }

  AttentionContext context_;
  std::vector<Block> blocks_;
  std::vector<AttentionPart> parts_;
  std::vector<std::int64_t> rows_;  // tokens by cp rank
  at::Tensor packed_to_gathered_;   // undefined where the two orders are the same
  at::Tensor gathered_to_packed_;
};

}  // namespace

std::unique_ptr<AttentionCore> make_gather_core(const ShardPlan& plan, const AttentionContext& context) {
  return std::make_unique<GatherCore>(plan, context);
}

}  // namespace ballast
