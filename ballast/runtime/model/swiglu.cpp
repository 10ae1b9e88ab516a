#include "ballast/runtime/model/swiglu.h"

#include <ATen/ATen.h>

namespace ballast {

at::Tensor swiglu_reference(const at::Tensor& gate_TF, const at::Tensor& up_TF) { return at::silu(gate_TF) * up_TF; }

at::Tensor swiglu(const at::Tensor& gate_TF, const at::Tensor& up_TF) { return swiglu_reference(gate_TF, up_TF); }

}  // namespace ballast
