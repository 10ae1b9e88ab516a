#include "ballast/runtime/attention/merge.h"

#include <ATen/ATen.h>

namespace ballast {

AttentionOutput merge(const AttentionOutput& a, const AttentionOutput& b) {
  const at::Tensor lse_HQ = at::logaddexp(a.lse_HQ, b.lse_HQ);
  // out = a + w (b - a) with w the share of b's keys in the softmax's denominator.
  const at::Tensor share_QH1 = (b.lse_HQ - lse_HQ).exp_().transpose(0, 1).unsqueeze(-1);
  const at::Tensor out_QHD =
      at::lerp(a.out_QHD.to(lse_HQ.scalar_type()), b.out_QHD.to(lse_HQ.scalar_type()), share_QH1);
  return {out_QHD.to(a.out_QHD.scalar_type()), lse_HQ};
}

}  // namespace ballast
