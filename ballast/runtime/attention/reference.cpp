#include "ballast/runtime/attention/reference.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

namespace ballast {

at::Tensor reference_attention(const at::Tensor& q_THD, const at::Tensor& k_TKD, const at::Tensor& v_TKD,
                               const std::vector<Tokens>& cu_seqlens) {
  const auto tokens = q_THD.size(0);
  const auto group = q_THD.size(1) / k_TKD.size(1);
  at::Tensor allowed_TT = at::zeros({tokens, tokens}, at::kBool);
  for (std::size_t d = 0; d + 1 < cu_seqlens.size(); ++d) {
    const auto begin = cu_seqlens[d];
    const auto end = cu_seqlens[d + 1];
    allowed_TT.slice(0, begin, end).slice(1, begin, end).copy_(at::ones({end - begin, end - begin}, at::kBool).tril());
  }
  const at::Tensor q_HTD = q_THD.transpose(0, 1);
  const at::Tensor k_HTD = k_TKD.repeat_interleave(group, 1).transpose(0, 1);
  const at::Tensor v_HTD = v_TKD.repeat_interleave(group, 1).transpose(0, 1);
  const double scale = 1.0 / std::sqrt(static_cast<double>(q_THD.size(2)));
  const at::Tensor scores_HTT = at::matmul(q_HTD, k_HTD.transpose(1, 2)) * scale;
  const at::Tensor weights_HTT =
      scores_HTT.masked_fill(allowed_TT.logical_not(), -std::numeric_limits<double>::infinity()).softmax(-1);
  return at::matmul(weights_HTT, v_HTD).transpose(0, 1);
}

}  // namespace ballast
