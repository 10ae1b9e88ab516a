// The remapping layer (requirement Z6): moves rows between the order in which attention runs and the one in which the
// modules run that are linear in tokens, by one exchange of unequal parts.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "ballast/ir/shard_plan.h"
#include "ballast/runtime/attention/core.h"

namespace ballast {

class TokenMoves {
 public:
  // REQUIRES: plan.violations() is empty.
  TokenMoves(const ShardPlan& plan, const AttentionContext& context);

  // x_TX, rows of any shape X, from one order to the other; the same tensor where the plan moves nothing. All cp ranks
  // call this in the same order; `layer` labels the span.
  at::Tensor to_attention(int layer, const at::Tensor& x_TX) const;
  at::Tensor to_linear(int layer, const at::Tensor& x_TX) const;

  bool empty() const { return !any_; }

 private:
  struct Part {
    int peer = 0;
    TokenRange attention_rows = {};  // of tokens this rank gives
    TokenRange linear_rows = {};     // of tokens this rank is given
  };

  at::Tensor exchange(int layer, const at::Tensor& x_TX, bool to_linear) const;

  AttentionContext context_;
  bool any_ = false;
  Tokens kept_ = 0;          // rows that stay, first in both orders
  std::vector<Part> gives_;  // ascending by peer
  std::vector<Part> given_;  // ascending by peer
  Tokens attention_rows_ = 0;
  Tokens linear_rows_ = 0;
  std::uint32_t tag_ = 0;
};

}  // namespace ballast
