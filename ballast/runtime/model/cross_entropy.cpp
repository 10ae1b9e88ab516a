#include "ballast/runtime/model/cross_entropy.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

namespace ballast {

at::Tensor linear_cross_entropy_reference(const at::Tensor& x_TD, const at::Tensor& weight_VD,
                                          const at::Tensor& labels_T) {
  const at::Tensor logits_TV = at::linear(x_TD, weight_VD);
  const auto wide = x_TD.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor logs_TV = logits_TV.to(wide).log_softmax(-1);
  const at::Tensor counts_T = labels_T != kIgnoredLabel;
  const at::Tensor picked_T = logs_TV.gather(1, labels_T.clamp_min(0).unsqueeze(1)).squeeze(1);
  return -at::where(counts_T, picked_T, at::zeros_like(picked_T)).sum();
}

namespace {

// Logits are made for some tokens at a time: this many numbers of them, but no fewer than kMinRows tokens, so that the
// weight's gradient is not read and written too often.
constexpr std::int64_t kLogitsAtOnce = 1 << 19;
constexpr std::int64_t kMinRows = 512;

// The gradients are computed along with the loss, while the logits are at hand, and only scaled in backward: logits are
// never stored and never computed twice. Forward is the slower for it and backward nearly free.
struct LinearCrossEntropy : torch::autograd::Function<LinearCrossEntropy> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x_TD,
                            const at::Tensor& weight_VD, const at::Tensor& labels_T) {
    const auto type = x_TD.scalar_type();
    const auto wide = type == at::kDouble ? at::kDouble : at::kFloat;
    const std::int64_t tokens = x_TD.size(0);
    const std::int64_t rows = std::max(kMinRows, kLogitsAtOnce / weight_VD.size(0));
    at::Tensor loss = at::zeros({}, x_TD.options().dtype(wide));
    at::Tensor dx_TD = at::empty_like(x_TD);
    at::Tensor dweight_VD = at::zeros(weight_VD.sizes(), loss.options());
    for (std::int64_t begin = 0; begin < tokens; begin += rows) {
      const at::Tensor x_RD = x_TD.slice(0, begin, begin + rows);
      const at::Tensor labels_R1 = labels_T.slice(0, begin, begin + rows).unsqueeze(1);
      const at::Tensor counts_R1 = (labels_R1 != kIgnoredLabel).to(wide);
      const at::Tensor index_R1 = labels_R1.clamp_min(0);
      at::Tensor logs_RV = at::log_softmax(at::mm(x_RD, weight_VD.t()), -1, wide);
      loss.sub_(logs_RV.gather(1, index_R1).mul_(counts_R1).sum());
      // d loss / d logits = softmax - one at the label, nothing where no label counts.
      at::Tensor dlogits_RV = logs_RV.exp_().mul_(counts_R1).scatter_add_(1, index_R1, -counts_R1);
      dlogits_RV = dlogits_RV.to(type);
      at::Tensor dx_RD = dx_TD.slice(0, begin, begin + rows);
      at::mm_out(dx_RD, dlogits_RV, weight_VD);
      if (type == wide)
        dweight_VD.addmm_(dlogits_RV.t(), x_RD);
      else
        dweight_VD.add_(at::mm(dlogits_RV.t(), x_RD));
    }
    context->save_for_backward({dx_TD, dweight_VD});
    context->saved_data["weight_type"] = static_cast<std::int64_t>(weight_VD.scalar_type());
    return loss;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto weight_type = static_cast<at::ScalarType>(context->saved_data["weight_type"].toInt());
    return {(saved[0] * gradients[0]).to(saved[0].scalar_type()), (saved[1] * gradients[0]).to(weight_type),
            at::Tensor()};
  }
};

}  // namespace

at::Tensor linear_cross_entropy(const at::Tensor& x_TD, const at::Tensor& weight_VD, const at::Tensor& labels_T) {
  return LinearCrossEntropy::apply(x_TD, weight_VD, labels_T);
}

}  // namespace ballast
