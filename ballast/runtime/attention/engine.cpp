#include "ballast/runtime/attention/engine.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "ballast/runtime/attention/local_kernel.h"

namespace ballast {

struct ContextAttention::Plan {
  struct Block {
    std::int64_t first_row;  // of its queries, in local order
    AttentionBlock work;
  };
  std::vector<Block> blocks;
  std::vector<std::int64_t> rows;  // tokens by cp rank
  at::Tensor packed_to_gathered;   // undefined where the two orders are the same
  at::Tensor gathered_to_packed;
  Communicator* cp = nullptr;
  SpanRecorder* recorder = nullptr;
  int stage = 0;
  int micro_batch = 0;

  Span span(SpanKind kind, int layer, Bytes bytes) const {
    return {.kind = kind, .stage = stage, .micro_batch = micro_batch, .layer = layer, .bytes = bytes, .axis = Axis::cp};
  }
};

namespace {

using Plan = ContextAttention::Plan;

at::Tensor index_tensor(const std::vector<Tokens>& rows) { return at::tensor(at::ArrayRef<Tokens>(rows), at::kLong); }

at::Tensor reorder(const at::Tensor& rows_RX, const at::Tensor& order) {
  return order.defined() ? rows_RX.index_select(0, order) : rows_RX;
}

// Every rank's keys and values in packed order: kv_T2KD.
at::Tensor gather(const Plan& plan, int layer, const at::Tensor& k_TKD, const at::Tensor& v_TKD) {
  const at::Tensor local_T2KD = at::stack({k_TKD, v_TKD}, 1);
  const Bytes sent = static_cast<Bytes>(local_T2KD.nbytes()) * (plan.cp->size() - 1);
  const SpanScope scope(*plan.recorder, plan.span(SpanKind::GATHER_KV, layer, sent));
  return reorder(plan.cp->all_gather_rows(local_T2KD, plan.rows), plan.packed_to_gathered);
}

// The gradients that all ranks found for this rank's keys and values, summed.
at::Tensor scatter(const Plan& plan, int layer, const at::Tensor& dkv_T2KD) {
  const auto own = plan.rows[static_cast<std::size_t>(plan.cp->rank())];
  const Bytes sent = static_cast<Bytes>(dkv_T2KD.nbytes()) - own * static_cast<Bytes>(dkv_T2KD.slice(0, 0, 1).nbytes());
  const SpanScope scope(*plan.recorder, plan.span(SpanKind::REDUCE_KV, layer, sent));
  return plan.cp->reduce_scatter_rows(reorder(dkv_T2KD, plan.gathered_to_packed), plan.rows);
}

// How autograd carries the plan from forward to backward.
struct SharedPlan : torch::CustomClassHolder {
  explicit SharedPlan(std::shared_ptr<const Plan> shared) : plan(std::move(shared)) {}
  std::shared_ptr<const Plan> plan;
};

struct ContextAttentionFunction : torch::autograd::Function<ContextAttentionFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& q_THD, const at::Tensor& k_TKD,
                            const at::Tensor& v_TKD, const std::shared_ptr<const Plan>& plan, std::int64_t layer) {
    const at::Tensor kv_T2KD = gather(*plan, static_cast<int>(layer), k_TKD, v_TKD);
    const auto wide = q_THD.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    at::Tensor out_THD = at::empty(q_THD.sizes(), q_THD.options());
    at::Tensor lse_HT = at::empty({q_THD.size(1), q_THD.size(0)}, q_THD.options().dtype(wide));
    for (const auto& [row, work] : plan->blocks) {
      const at::Tensor kv = kv_T2KD.slice(0, work.keys.begin, work.keys.end);
      const auto count = work.queries.size();
      const AttentionOutput block = attend_block(q_THD.narrow(0, row, count), kv.select(1, 0), kv.select(1, 1));
      out_THD.narrow(0, row, count).copy_(block.out_QHD);
      lse_HT.narrow(1, row, count).copy_(block.lse_HQ);
    }
    context->save_for_backward({q_THD, kv_T2KD, out_THD, lse_HT});
    context->saved_data["plan"] = c10::IValue::make_capsule(c10::make_intrusive<SharedPlan>(plan));
    context->saved_data["layer"] = layer;
    return out_THD;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto shared = context->saved_data["plan"].toCapsule();
    const Plan& plan = *static_cast<const SharedPlan&>(*shared).plan;
    const auto saved = context->get_saved_variables();
    const at::Tensor &q_THD = saved[0], &kv_T2KD = saved[1], &out_THD = saved[2], &lse_HT = saved[3];
    const at::Tensor dout_THD = gradients[0].contiguous();
    // Several blocks may read the same keys, so their gradients add up, in the log-sum-exp's type.
    at::Tensor dq_THD = at::zeros(q_THD.sizes(), lse_HT.options());
    at::Tensor dkv_T2KD = at::zeros(kv_T2KD.sizes(), lse_HT.options());
    for (const auto& [row, work] : plan.blocks) {
      const auto count = work.queries.size();
      const at::Tensor kv = kv_T2KD.slice(0, work.keys.begin, work.keys.end);
      const at::Tensor dkv = dkv_T2KD.slice(0, work.keys.begin, work.keys.end);
      attend_block_backward(dout_THD.narrow(0, row, count), q_THD.narrow(0, row, count), kv.select(1, 0),
                            kv.select(1, 1), {out_THD.narrow(0, row, count), lse_HT.narrow(1, row, count)},
                            {dq_THD.narrow(0, row, count), dkv.select(1, 0), dkv.select(1, 1)});
    }
    const auto layer = static_cast<int>(context->saved_data["layer"].toInt());
    const at::Tensor local_dkv_T2KD = scatter(plan, layer, dkv_T2KD).to(q_THD.scalar_type());
    return {dq_THD.to(q_THD.scalar_type()), local_dkv_T2KD.select(1, 0), local_dkv_T2KD.select(1, 1), at::Tensor(),
            at::Tensor()};
  }
};

}  // namespace

ContextAttention::ContextAttention(const ShardPlan& plan, Communicator& cp, SpanRecorder& recorder, int stage,
                                   int micro_batch) {
  BALLAST_ASSERT(plan.num_ranks() == cp.size(), "the plan is for another number of ranks");
  auto made = std::make_shared<Plan>();
  std::int64_t row = 0;
  for (const AttentionBlock& block : plan.attention_blocks(cp.rank())) {
    made->blocks.push_back({row, block});
    row += block.queries.size();
  }
  made->rows = plan.tokens_per_rank();
  if (!plan.gathers_in_order()) {
    const std::vector<Tokens> to_gathered = plan.packed_to_gathered();
    std::vector<Tokens> to_packed(to_gathered.size());
    for (std::size_t t = 0; t < to_gathered.size(); ++t)
      to_packed[static_cast<std::size_t>(to_gathered[t])] = static_cast<Tokens>(t);
    made->packed_to_gathered = index_tensor(to_gathered);
    made->gathered_to_packed = index_tensor(to_packed);
  }
  made->cp = &cp;
  made->recorder = &recorder;
  made->stage = stage;
  made->micro_batch = micro_batch;
  plan_ = std::move(made);
}

at::Tensor ContextAttention::operator()(int layer, const at::Tensor& q_THD, const at::Tensor& k_TKD,
                                        const at::Tensor& v_TKD) const {
  return ContextAttentionFunction::apply(q_THD, k_TKD, v_TKD, plan_, static_cast<std::int64_t>(layer));
}

}  // namespace ballast
