#include "ballast/runtime/attention/local_kernel.h"

#include <ATen/ATen.h>

#include "ballast/base/error.h"

namespace ballast {

namespace {

// [rows, heads, D] <-> the kernel's [1, heads, rows, D]; both are views.
at::Tensor to_kernel(const at::Tensor& x_THD) { return x_THD.transpose(0, 1).unsqueeze(0); }
at::Tensor from_kernel(const at::Tensor& x_1HTD) { return x_1HTD.squeeze(0).transpose(0, 1); }

// A block is a rectangle over the keys that all its queries see, and a causal diagonal over the rest. One query alone
// sees every key: then the rectangle is all there is. Returns the number of keys in the rectangle.
std::int64_t rectangle_keys(std::int64_t queries, std::int64_t keys) { return queries == 1 ? keys : keys - queries; }

}  // namespace

AttentionOutput attend_part(const at::Tensor& q_QHD, const at::Tensor& k_TKD, const at::Tensor& v_TKD, bool causal) {
  BALLAST_ASSERT(q_QHD.size(0) >= 1 && k_TKD.size(0) >= 1, "the kernel dies on empty tensors");
  auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(to_kernel(q_QHD), to_kernel(k_TKD),
                                                                    to_kernel(v_TKD), 0.0, causal);
  return {from_kernel(out), lse.squeeze(0)};
}

void attend_part_backward(const at::Tensor& dout_QHD, const at::Tensor& q_QHD, const at::Tensor& k_TKD,
                          const at::Tensor& v_TKD, const AttentionOutput& output, bool causal,
                          const AttentionGradients& into) {
  auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      to_kernel(dout_QHD), to_kernel(q_QHD), to_kernel(k_TKD), to_kernel(v_TKD), to_kernel(output.out_QHD),
      output.lse_HQ.unsqueeze(0), 0.0, causal);
  into.dq_QHD.add_(from_kernel(dq));
  into.dk_TKD.add_(from_kernel(dk));
  into.dv_TKD.add_(from_kernel(dv));
}

AttentionOutput attend_block(const at::Tensor& q_QHD, const at::Tensor& k_TKD, const at::Tensor& v_TKD) {
  const auto queries = q_QHD.size(0);
  const auto keys = k_TKD.size(0);
  BALLAST_ASSERT(queries >= 1 && queries <= keys, "a block has a query, and a key for each");
  const auto before = rectangle_keys(queries, keys);
  if (before == 0) return attend_part(q_QHD, k_TKD, v_TKD, true);
  const AttentionOutput rectangle = attend_part(q_QHD, k_TKD.narrow(0, 0, before), v_TKD.narrow(0, 0, before), false);
  if (before == keys) return rectangle;
  return merge(rectangle, attend_part(q_QHD, k_TKD.narrow(0, before, queries), v_TKD.narrow(0, before, queries), true));
}

void attend_block_backward(const at::Tensor& dout_QHD, const at::Tensor& q_QHD, const at::Tensor& k_TKD,
                           const at::Tensor& v_TKD, const AttentionOutput& output, const AttentionGradients& into) {
  const auto keys = k_TKD.size(0);
  const auto before = rectangle_keys(q_QHD.size(0), keys);
  const auto part = [&](std::int64_t begin, std::int64_t count, bool causal) {
    if (count == 0) return;
    attend_part_backward(dout_QHD, q_QHD, k_TKD.narrow(0, begin, count), v_TKD.narrow(0, begin, count), output, causal,
                         {into.dq_QHD, into.dk_TKD.narrow(0, begin, count), into.dv_TKD.narrow(0, begin, count)});
  };
  part(0, before, false);
  part(before, keys - before, true);
}

}  // namespace ballast
