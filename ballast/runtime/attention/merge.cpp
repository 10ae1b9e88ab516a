#include "ballast/runtime/attention/merge.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "ballast/base/error.h"

namespace ballast {

AttentionOutput merge(const AttentionOutput& a, const AttentionOutput& b) {
  const at::Tensor lse_HQ = at::logaddexp(a.lse_HQ, b.lse_HQ);
  // out = a + w (b - a) with w the share of b's keys in the softmax's denominator.
  const at::Tensor share_QH1 = (b.lse_HQ - lse_HQ).exp_().transpose(0, 1).unsqueeze(-1);
  const at::Tensor out_QHD =
      at::lerp(a.out_QHD.to(lse_HQ.scalar_type()), b.out_QHD.to(lse_HQ.scalar_type()), share_QH1);
  return {out_QHD.to(a.out_QHD.scalar_type()), lse_HQ};
}

namespace {

template <class Wide>
void merge_rows(const at::Tensor& out_QHD, const at::Tensor& lse_HQ, const at::Tensor& part_QHD,
                const at::Tensor& part_lse_HQ) {
  const std::int64_t rows = out_QHD.size(0), heads = out_QHD.size(1), dim = out_QHD.size(2);
  const auto* part = part_QHD.const_data_ptr<Wide>();
  const auto* part_lse = part_lse_HQ.const_data_ptr<Wide>();
  auto* out = out_QHD.mutable_data_ptr<Wide>();
  auto* lse = lse_HQ.mutable_data_ptr<Wide>();
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t head = 0; head < heads; ++head) {
      Wide& mine = lse[head * lse_HQ.stride(0) + row * lse_HQ.stride(1)];
      const Wide theirs = part_lse[head * part_lse_HQ.stride(0) + row * part_lse_HQ.stride(1)];
      const Wide high = std::max(mine, theirs);
      const Wide of_mine = std::exp(mine - high);
      const Wide of_theirs = std::exp(theirs - high);
      const Wide sum = of_mine + of_theirs;
      const Wide keep = of_mine / sum;
      const Wide add = of_theirs / sum;
      mine = high + std::log(sum);
      Wide* to = out + row * out_QHD.stride(0) + head * out_QHD.stride(1);
      const Wide* from = part + row * part_QHD.stride(0) + head * part_QHD.stride(1);
      for (std::int64_t d = 0; d < dim; ++d) to[d] = keep * to[d] + add * from[d];
    }
  }
}

}  // namespace

void merge_into(const AttentionOutput& into, const AttentionOutput& part) {
  const auto wide = into.out_QHD.scalar_type();
  BALLAST_ASSERT(into.lse_HQ.scalar_type() == wide && part.lse_HQ.scalar_type() == wide && into.out_QHD.stride(2) == 1,
                 "outputs are merged in the log-sum-exp's type");
  at::Tensor theirs = part.out_QHD.to(wide);
  if (theirs.stride(2) != 1) theirs = theirs.contiguous();
  if (wide == at::kDouble) {
    merge_rows<double>(into.out_QHD, into.lse_HQ, theirs, part.lse_HQ);
  } else {
    merge_rows<float>(into.out_QHD, into.lse_HQ, theirs, part.lse_HQ);
  }
}

}  // namespace ballast
