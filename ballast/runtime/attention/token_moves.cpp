#include "ballast/runtime/attention/token_moves.h"

#include <ATen/ATen.h>

#include <memory>

namespace ballast {

namespace {

// Tags of rings are below: at most 2^20 rings of three purposes.
constexpr std::uint32_t kFirstTag = 3U << 20;

}  // namespace

TokenMoves::TokenMoves(const ShardPlan& plan, const AttentionContext& context)
    : context_(context), any_(!plan.moves.empty()), tag_(kFirstTag) {
  const int rank = context.cp.rank();
  attention_rows_ = plan.num_tokens(rank);
  linear_rows_ = plan.linear_tokens(rank);
  kept_ = attention_rows_;
  for (const TokenMove& move : plan.moves) kept_ -= move.from == rank ? move.tokens : 0;
  Tokens give = kept_;
  Tokens take = kept_;
  for (const TokenMove& move : plan.moves) {
    if (move.from == rank) {
      gives_.push_back({.peer = move.to, .attention_rows = {give, give + move.tokens}});
      give += move.tokens;
    }
    if (move.to == rank) {
      given_.push_back({.peer = move.from, .linear_rows = {take, take + move.tokens}});
      take += move.tokens;
    }
  }
}

at::Tensor TokenMoves::to_attention(int layer, const at::Tensor& x_TX) const {
  return any_ ? exchange(layer, x_TX, false) : x_TX;
}

at::Tensor TokenMoves::to_linear(int layer, const at::Tensor& x_TX) const {
  return any_ ? exchange(layer, x_TX, true) : x_TX;
}

at::Tensor TokenMoves::exchange(int layer, const at::Tensor& x_TX, bool to_linear) const {
  const at::Tensor x = x_TX.contiguous();
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape[0] = to_linear ? linear_rows_ : attention_rows_;
  at::Tensor moved = at::empty(shape, x.options());
  const auto rows = [](const at::Tensor& all, const TokenRange& range) {
    return all.narrow(0, range.begin, range.size());
  };
  const std::uint32_t tag = tag_ + (to_linear ? 1 : 0);
  std::vector<std::unique_ptr<Transfer>> transfers;
  Bytes sent = 0;
  // What is given in one direction comes back in the other.
  for (const Part& part : to_linear ? given_ : gives_) {
    const TokenRange& range = to_linear ? part.linear_rows : part.attention_rows;
    transfers.push_back(context_.cp.receive(rows(moved, range), part.peer, tag));
  }
  for (const Part& part : to_linear ? gives_ : given_) {
    const at::Tensor piece = rows(x, to_linear ? part.attention_rows : part.linear_rows);
    sent += static_cast<Bytes>(piece.nbytes());
    transfers.push_back(context_.cp.send(piece, part.peer, tag));
  }
  moved.narrow(0, 0, kept_).copy_(x.narrow(0, 0, kept_));
  const SpanScope scope(context_.recorder, context_.span(SpanKind::REMAP, layer, sent));
  for (const auto& transfer : transfers) transfer->wait();
  return moved;
}

}  // namespace ballast
