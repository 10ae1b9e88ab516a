#include "ballast/runtime/model/swiglu.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

namespace ballast {

at::Tensor swiglu_reference(const at::Tensor& gate_TF, const at::Tensor& up_TF) { return at::silu(gate_TF) * up_TF; }

namespace {

// Numbers a block holds: several passes over a block find it in the cache, where passes over the whole go to memory.
constexpr std::int64_t kBlock = 32768;

// body(begin, end) over the flat numbers, in blocks. Workers don't inherit that gradients are off, so the tensors that
// body works on must be detached.
template <class Body>
void for_blocks(std::int64_t count, const Body& body) {
  at::parallel_for(0, (count + kBlock - 1) / kBlock, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t block = first; block < last; ++block) body(block * kBlock, std::min(count, (block + 1) * kBlock));
  });
}

at::Tensor flat(const at::Tensor& x) { return x.detach().view({-1}); }

struct SwiGlu : torch::autograd::Function<SwiGlu> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& gate, const at::Tensor& up) {
    const at::Tensor gate_TF = gate.contiguous(), up_TF = up.contiguous();
    at::Tensor out_TF = at::empty_like(gate_TF);
    const at::Tensor g = flat(gate_TF), u = flat(up_TF), out = flat(out_TF);
    for_blocks(g.numel(), [&](std::int64_t begin, std::int64_t end) {
      at::Tensor block = out.slice(0, begin, end);
      at::silu_out(block, g.slice(0, begin, end));
      block.mul_(u.slice(0, begin, end));
    });
    context->save_for_backward({gate_TF, up_TF});
    return out_TF;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor dout_TF = gradients[0].contiguous();
    at::Tensor dgate_TF = at::empty_like(saved[0]), dup_TF = at::empty_like(saved[1]);
    const at::Tensor g = flat(saved[0]), u = flat(saved[1]), dout = flat(dout_TF);
    const at::Tensor dgate = flat(dgate_TF), dup = flat(dup_TF);
    for_blocks(g.numel(), [&](std::int64_t begin, std::int64_t end) {
      const at::Tensor g_block = g.slice(0, begin, end), dout_block = dout.slice(0, begin, end);
      at::Tensor dup_block = dup.slice(0, begin, end), dgate_block = dgate.slice(0, begin, end);
      at::mul_out(dup_block, dout_block, u.slice(0, begin, end));  // dsilu, for as long as it takes
      at::silu_backward_out(dgate_block, dup_block, g_block);
      at::silu_out(dup_block, g_block);
      dup_block.mul_(dout_block);
    });
    return {dgate_TF, dup_TF};
  }
};

}  // namespace

at::Tensor swiglu(const at::Tensor& gate_TF, const at::Tensor& up_TF) { return SwiGlu::apply(gate_TF, up_TF); }

}  // namespace ballast
