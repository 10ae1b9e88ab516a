#include "ballast/runtime/attention/engine.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "ballast/runtime/attention/token_moves.h"

namespace ballast {

struct ContextAttention::Shared {
  TokenMoves moves;
  std::unique_ptr<AttentionCore> core;
  Pace& pace;
  Tokens linear_tokens;
};

namespace {

using Shared = ContextAttention::Shared;

// Queries, keys and values move together, and so do their gradients: one exchange.
at::Tensor join_heads(const at::Tensor& q_THD, const at::Tensor& k_TKD, const at::Tensor& v_TKD) {
  return at::cat({q_THD, k_TKD, v_TKD}, 1);
}
std::array<at::Tensor, 3> split_heads(const at::Tensor& qkv_TXD, std::int64_t heads) {
  const std::int64_t kv_heads = (qkv_TXD.size(1) - heads) / 2;
  return {qkv_TXD.narrow(1, 0, heads), qkv_TXD.narrow(1, heads, kv_heads),
          qkv_TXD.narrow(1, heads + kv_heads, kv_heads)};
}

// How autograd carries what is shared from forward to backward.
struct Carried : torch::CustomClassHolder {
  explicit Carried(std::shared_ptr<const Shared> what) : shared(std::move(what)) {}
  std::shared_ptr<const Shared> shared;
};

struct ContextAttentionFunction : torch::autograd::Function<ContextAttentionFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& q_THD, const at::Tensor& k_TKD,
                            const at::Tensor& v_TKD, const std::shared_ptr<const Shared>& shared, std::int64_t layer) {
    shared->pace.linear_done(true, shared->linear_tokens);
    const auto number = static_cast<int>(layer);
    std::array<at::Tensor, 3> qkv = {q_THD, k_TKD, v_TKD};
    if (!shared->moves.empty()) {
      qkv = split_heads(shared->moves.to_attention(number, join_heads(q_THD, k_TKD, v_TKD)), q_THD.size(1));
    }
    const AttentionState state = shared->core->forward(number, qkv[0], qkv[1], qkv[2]);
    context->save_for_backward({state.q_THD, state.kv, state.out_THD, state.lse_HT});
    context->saved_data["shared"] = c10::IValue::make_capsule(c10::make_intrusive<Carried>(shared));
    context->saved_data["layer"] = layer;
    return shared->moves.to_linear(number, state.out_THD);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto carried = context->saved_data["shared"].toCapsule();
    const Shared& shared = *static_cast<const Carried&>(*carried).shared;
    const auto layer = static_cast<int>(context->saved_data["layer"].toInt());
    const auto saved = context->get_saved_variables();
    const AttentionState state{saved[0], saved[1], saved[2], saved[3]};
    const at::Tensor dout_THD = shared.moves.to_attention(layer, gradients[0]).contiguous();
    std::array<at::Tensor, 3> found = shared.core->backward(layer, state, dout_THD);
    if (!shared.moves.empty()) {
      found = split_heads(shared.moves.to_linear(layer, join_heads(found[0], found[1], found[2])), found[0].size(1));
    }
    shared.pace.linear_done(false, shared.linear_tokens);
    return {found[0], found[1], found[2], at::Tensor(), at::Tensor()};
  }
};

}  // namespace

ContextAttention::ContextAttention(const ShardPlan& plan, const AttentionContext& context) {
  BALLAST_ASSERT(plan.num_ranks() == context.cp.size(), "the plan is for another number of ranks");
  shared_ = std::make_shared<const Shared>(
      Shared{TokenMoves(plan, context),
             plan.attends_in_rings() ? make_ring_core(plan, context) : make_gather_core(plan, context), context.pace,
             plan.linear_tokens(context.cp.rank())});
}

at::Tensor ContextAttention::operator()(int layer, const at::Tensor& q_THD, const at::Tensor& k_TKD,
                                        const at::Tensor& v_TKD) const {
  return ContextAttentionFunction::apply(q_THD, k_TKD, v_TKD, shared_, static_cast<std::int64_t>(layer));
}

}  // namespace ballast
