// The gated unit of the MLP (Shazeer, 2020): silu(gate) * up, element by element.
#pragma once

#include <ATen/core/Tensor.h>

namespace ballast {

// Differentiable; keeps only its two inputs for backward.
at::Tensor swiglu(const at::Tensor& gate_TF, const at::Tensor& up_TF);

// The same in plain operations.
at::Tensor swiglu_reference(const at::Tensor& gate_TF, const at::Tensor& up_TF);

}  // namespace ballast
